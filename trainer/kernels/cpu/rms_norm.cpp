// RMSNorm on the CPU: a row is read twice, the second time from cache.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/norm_rows.h"
#include "trainer/kernels/cpu/partials.h"

namespace tycho::TYCHO_ISA {
namespace {

/// Weights that a norm multiplies by. Most have no offset, and no addition for it.
template <class T, bool kOffset>
struct Weights {
  const T* stored;
  float offset;

  template <class Lanes>
  TYCHO_SIMD_MEMBER Vec at(int64_t i, Lanes lanes) const {
    if constexpr (kOffset)
      return load(stored + i, lanes) + offset;
    else
      return load(stored + i, lanes);
  }
};

/// Calls body with the weights.
template <class T, class Body>
TYCHO_SIMD void with_weights(const void* stored, float offset, const Body& body) {
  const T* weight = static_cast<const T*>(stored);
  if (offset == 0)
    body(Weights<T, false>{weight, 0});
  else
    body(Weights<T, true>{weight, offset});
}

template <class Row, class W>
void forward_row(const Row& row, W weight, float eps, float* inv_rms) {
  Vec squares{};
  for_lanes(row.dim, [&](int64_t i, auto lanes) {
    const Vec value = row.input(i, lanes);
    squares += value * value;
  });
  const float inverse = 1.0f / __builtin_sqrtf(sum_lanes(squares) / static_cast<float>(row.dim) + eps);
  const auto* x = row.normed();
  row.write([&](int64_t i, auto lanes) { return load(x + i, lanes) * inverse * weight.at(i, lanes); });
  *inv_rms = inverse;
}

/// With xhat = x * inv_rms and g = dy * (offset + weight): dx = inv_rms * (g - xhat * mean(g * xhat));
/// dweight += dy * xhat.
template <bool kAdd, class T, class W>
void backward_row(int64_t dim, const T* x, W weight, float inv_rms, const T* dy, T* dx, float* dweight) {
  Vec products{};
  for_lanes(dim, [&](int64_t i, auto lanes) {
    products += load(dy + i, lanes) * weight.at(i, lanes) * load(x + i, lanes);
  });
  const float slope = sum_lanes(products) * inv_rms * inv_rms * inv_rms / static_cast<float>(dim);
  for_lanes(dim, [&](int64_t i, auto lanes) {
    const Vec value = load(x + i, lanes), scaled = load(dy + i, lanes) * inv_rms;
    store(dweight + i, load(dweight + i, lanes) + scaled * value, lanes);
    Vec gradient = scaled * weight.at(i, lanes) - value * slope;
    if constexpr (kAdd) gradient += load(dx + i, lanes);
    store(dx + i, gradient, lanes);
  });
}

template <class Rows, class W>
void forward(const Rows& rows, W weight, float eps, float* inv_rms) {
  const NormShape& shape = rows.shape;
  for_row_blocks(shape.rows, shape.groups * shape.dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row)
      for (int64_t group = 0; group < shape.groups; ++group)
        forward_row(rows.at(row, group), weight, eps, inv_rms + row * shape.groups + group);
  });
}

template <bool kAdd, class T, class W>
void backward(NormShape shape, const T* x, W weight, const float* inv_rms, const T* dy, T* dx,
              float* workspace) {
  for_partials(shape.rows, shape.groups * shape.dim, [&](int64_t partial, int64_t first, int64_t end) {
    float* dweight = workspace + partial * shape.dim;
    __builtin_memset(dweight, 0, shape.dim * sizeof(float));
    for (int64_t row = first; row < end; ++row)
      for (int64_t group = 0; group < shape.groups; ++group) {
        const int64_t at = group * shape.dim;
        backward_row<kAdd>(shape.dim, x + row * shape.x_step + at, weight,
                           inv_rms[row * shape.groups + group], dy + row * shape.y_step + at,
                           dx + row * shape.dx_step + at, dweight);
      }
  });
}

template <class T>
void forward_of(NormShape shape, const void* x, const void* weight, float offset, float eps, void* y,
                float* inv_rms, const NormAdds& adds, const CastRows& casts) {
  with_weights<T>(weight, offset, [&](auto weights) {
    with_rows<T>(shape, x, y, adds, casts, [&](const auto& rows) { forward(rows, weights, eps, inv_rms); });
  });
}

template <class T>
void backward_of(NormShape shape, const void* x, const void* weight, float offset, const float* inv_rms,
                 const void* dy, void* dx, bool add_to_dx, float* workspace) {
  with_weights<T>(weight, offset, [&]<class W>(W weights) {
    const auto run = add_to_dx ? &backward<true, T, W> : &backward<false, T, W>;
    run(shape, static_cast<const T*>(x), weights, inv_rms, static_cast<const T*>(dy), static_cast<T*>(dx),
        workspace);
  });
}

}  // namespace

void rms_norm(NormShape shape, Dtype dtype, const void* x, const void* weight, float weight_offset, float eps,
              void* y, float* inv_rms, NormAdds adds, CastRows casts, Stream) {
  const auto run = dtype == Dtype::kFp32 ? &forward_of<float> : &forward_of<Bf16>;
  run(shape, x, weight, weight_offset, eps, y, inv_rms, adds, casts);
}

int64_t rms_norm_backward_workspace(NormShape shape) { return num_partials(shape.rows) * shape.dim; }

void rms_norm_backward(NormShape shape, Dtype dtype, const void* x, const void* weight, float weight_offset,
                       const float* inv_rms, const void* dy, void* dx, bool add_to_dx, float* dweight,
                       bool add_to_dweight, float* workspace, Stream) {
  const auto run = dtype == Dtype::kFp32 ? &backward_of<float> : &backward_of<Bf16>;
  run(shape, x, weight, weight_offset, inv_rms, dy, dx, add_to_dx, workspace);
  if (dweight) add_partials(shape.dim, workspace, num_partials(shape.rows), dweight, add_to_dweight);
}

}  // namespace tycho::TYCHO_ISA
