// LayerNorm on the CPU: a row is loaded from memory once; later passes over it read the cache.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/norm_rows.h"
#include "trainer/kernels/cpu/partials.h"

namespace tycho::TYCHO_ISA {
namespace {

template <class Row>
float mean_of(const Row& row) {
  Vec sum{};
  for_lanes(row.dim, [&](int64_t i, auto lanes) { sum += row.input(i, lanes); });
  return sum_lanes(sum) / static_cast<float>(row.dim);
}

/// Returns the variance around the mean, not a difference of squares, which would lose the variance of rows
/// far from 0.
template <class T>
float variance_of(int64_t dim, const T* x, float mean) {
  Vec sum{};
  for_lanes(dim, [&](int64_t i, auto lanes) {
    const Vec off = fill_rest(load(x + i, lanes) - mean, lanes, 0.0f);
    sum += off * off;
  });
  return sum_lanes(sum) / static_cast<float>(dim);
}

/// Returns x weight + bias, rounded once where the CPU can: in every form of the norm alike, which a
/// compiler's own choice is not.
TYCHO_SIMD Vec shifted(Vec x, Vec weight, Vec bias) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return fused_multiply_add(x, weight, bias);
#else
  return x * weight + bias;
#endif
}

template <Adding adding, class T>
void forward_group(const NormRow<adding, T>& row, const T* weight, const T* bias, float eps, float* mean,
                   float* inv_std) {
  const float center = mean_of(row);
  const T* x = row.normed();
  const float inverse = 1.0f / __builtin_sqrtf(variance_of(row.dim, x, center) + eps);
  row.write([&](int64_t i, auto lanes) {
    const Vec out = (load(x + i, lanes) - center) * inverse;
    return bias ? shifted(out, load(weight + i, lanes), load(bias + i, lanes))
                : out * load(weight + i, lanes);
  });
  *mean = center;
  *inv_std = inverse;
}

/// With xhat = (x - mean) * inv_std and g = dy * weight:
/// dx = inv_std * (g - mean(g) - xhat * mean(g * xhat)); dweight += dy * xhat; dbias += dy.
template <class T, bool kAdd>
void backward_group(int64_t dim, const T* x, const T* weight, float mean, float inv_std, const T* dy, T* dx,
                    float* dweight, float* dbias) {
  Vec sum{}, products{};
  for_lanes(dim, [&](int64_t i, auto lanes) {
    const Vec g = load(dy + i, lanes) * load(weight + i, lanes);
    sum += g;
    products += g * (load(x + i, lanes) - mean);
  });
  const float center = sum_lanes(sum) / static_cast<float>(dim);
  const float slope = sum_lanes(products) * inv_std / static_cast<float>(dim);
  for_lanes(dim, [&](int64_t i, auto lanes) {
    const Vec xhat = (load(x + i, lanes) - mean) * inv_std, d = load(dy + i, lanes);
    store(dweight + i, load(dweight + i, lanes) + d * xhat, lanes);
    if (dbias) store(dbias + i, load(dbias + i, lanes) + d, lanes);
    Vec gradient = (d * load(weight + i, lanes) - center - xhat * slope) * inv_std;
    if constexpr (kAdd) gradient += load(dx + i, lanes);
    store(dx + i, gradient, lanes);
  });
}

template <Adding adding, class T>
void forward(const NormRows<adding, T>& rows, const void* weight, const void* bias, float eps, float* mean,
             float* inv_std) {
  const NormShape& shape = rows.shape;
  for_row_blocks(shape.rows, shape.groups * shape.dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row)
      for (int64_t group = 0; group < shape.groups; ++group) {
        const int64_t stats = row * shape.groups + group;
        forward_group(rows.at(row, group), static_cast<const T*>(weight), static_cast<const T*>(bias), eps,
                      mean + stats, inv_std + stats);
      }
  });
}

/// dweights and dbiases: a partial sum [dim] for each run of rows; dbiases may be null.
template <class T, bool kAdd>
void backward(NormShape shape, const void* x, const void* weight, const float* mean, const float* inv_std,
              const void* dy, void* dx, float* dweights, float* dbiases) {
  for_partials(shape.rows, shape.groups * shape.dim, [&](int64_t partial, int64_t first, int64_t end) {
    float* dweight = dweights + partial * shape.dim;
    float* dbias = dbiases ? dbiases + partial * shape.dim : nullptr;
    __builtin_memset(dweight, 0, shape.dim * sizeof(float));
    if (dbias) __builtin_memset(dbias, 0, shape.dim * sizeof(float));
    for (int64_t row = first; row < end; ++row)
      for (int64_t group = 0; group < shape.groups; ++group) {
        const int64_t at = group * shape.dim, stats = row * shape.groups + group;
        backward_group<T, kAdd>(shape.dim, static_cast<const T*>(x) + row * shape.x_step + at,
                                static_cast<const T*>(weight), mean[stats], inv_std[stats],
                                static_cast<const T*>(dy) + row * shape.y_step + at,
                                static_cast<T*>(dx) + row * shape.dx_step + at, dweight, dbias);
      }
  });
}

}  // namespace

void layer_norm(NormShape shape, Dtype dtype, const void* x, const void* weight, const void* bias, float eps,
                void* y, float* mean, float* inv_std, NormAdds adds, CastRows casts, Stream) {
  const auto run = [&](const auto& rows) { forward(rows, weight, bias, eps, mean, inv_std); };
  if (dtype == Dtype::kFp32)
    with_rows<float>(shape, x, y, adds, casts, run);
  else
    with_rows<Bf16>(shape, x, y, adds, casts, run);
}

int64_t layer_norm_backward_workspace(NormShape shape) { return 2 * num_partials(shape.rows) * shape.dim; }

void layer_norm_backward(NormShape shape, Dtype dtype, const void* x, const void* weight, const float* mean,
                         const float* inv_std, const void* dy, void* dx, bool add_to_dx, float* dweight,
                         float* dbias, bool add_to_dweight, float* workspace, Stream) {
  const int64_t count = num_partials(shape.rows);
  float* dbiases = dbias ? workspace + count * shape.dim : nullptr;
  const auto run = dtype == Dtype::kFp32 ? (add_to_dx ? &backward<float, true> : &backward<float, false>)
                                         : (add_to_dx ? &backward<Bf16, true> : &backward<Bf16, false>);
  run(shape, x, weight, mean, inv_std, dy, dx, workspace, dbiases);
  if (dweight) add_partials(shape.dim, workspace, count, dweight, add_to_dweight);
  if (dbias) add_partials(shape.dim, dbiases, count, dbias, add_to_dweight);
}

}  // namespace tycho::TYCHO_ISA
