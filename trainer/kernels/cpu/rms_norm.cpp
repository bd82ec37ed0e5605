// RMSNorm on the CPU: a row is read twice, the second time from cache.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/parallel.h"

namespace tycho::TYCHO_ISA {
namespace {

template <class T>
void forward_row(int64_t dim, const T* x, const T* weight, float eps, T* y, float* inv_rms) {
  Vec squares{};
  for_lanes(dim, [&](int64_t i, auto lanes) {
    const Vec value = load(x + i, lanes);
    squares += value * value;
  });
  const float inverse = 1.0f / __builtin_sqrtf(sum_lanes(squares) / static_cast<float>(dim) + eps);
  for_lanes(dim, [&](int64_t i, auto lanes) {
    store(y + i, load(x + i, lanes) * inverse * load(weight + i, lanes), lanes);
  });
  *inv_rms = inverse;
}

/// With xhat = x * inv_rms and g = dy * weight: dx = inv_rms * (g - xhat * mean(g * xhat)); dweight += dy *
/// xhat.
template <class T, bool kAdd>
void backward_row(int64_t dim, const T* x, const T* weight, float inv_rms, const T* dy, T* dx,
                  float* dweight) {
  Vec products{};
  for_lanes(dim, [&](int64_t i, auto lanes) {
    products += load(dy + i, lanes) * load(weight + i, lanes) * load(x + i, lanes);
  });
  const float slope = sum_lanes(products) * inv_rms * inv_rms * inv_rms / static_cast<float>(dim);
  for_lanes(dim, [&](int64_t i, auto lanes) {
    const Vec value = load(x + i, lanes), scaled = load(dy + i, lanes) * inv_rms;
    store(dweight + i, load(dweight + i, lanes) + scaled * value, lanes);
    Vec gradient = scaled * load(weight + i, lanes) - value * slope;
    if constexpr (kAdd) gradient += load(dx + i, lanes);
    store(dx + i, gradient, lanes);
  });
}

// Partial sums of dweight: one row of the workspace per run of rows, whatever the number of threads.
constexpr int64_t kPartials = 32;

int64_t rows_per_partial(RowsShape shape) { return larger(16, ceil_div(shape.rows, kPartials)); }

void add_partials(RowsShape shape, const float* workspace, int64_t partials, float* dweight, bool add) {
  constexpr int64_t kColumns = 256;
  for_blocks(ceil_div(shape.dim, kColumns), shape.dim * partials, [&](int64_t block) {
    const int64_t first = block * kColumns;
    for_lanes(smaller(kColumns, shape.dim - first), [&](int64_t i, auto lanes) {
      Vec sum = add ? load(dweight + first + i, lanes) : Vec{};
      for (int64_t p = 0; p < partials; ++p) sum += load(workspace + p * shape.dim + first + i, lanes);
      store(dweight + first + i, sum, lanes);
    });
  });
}

template <class T>
void forward(RowsShape shape, const T* x, const T* weight, float eps, T* y, float* inv_rms) {
  for_row_blocks(shape.rows, shape.dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row)
      forward_row(shape.dim, x + row * shape.dim, weight, eps, y + row * shape.dim, inv_rms + row);
  });
}

template <class T, bool kAdd>
void backward(RowsShape shape, const T* x, const T* weight, const float* inv_rms, const T* dy, T* dx,
              float* workspace) {
  const int64_t run = rows_per_partial(shape);
  for_blocks(ceil_div(shape.rows, run), shape.rows * shape.dim, [&](int64_t block) {
    float* partial = workspace + block * shape.dim;
    __builtin_memset(partial, 0, shape.dim * sizeof(float));
    const int64_t end = smaller(shape.rows, (block + 1) * run);
    for (int64_t row = block * run; row < end; ++row) {
      const int64_t at = row * shape.dim;
      backward_row<T, kAdd>(shape.dim, x + at, weight, inv_rms[row], dy + at, dx + at, partial);
    }
  });
}

template <class T>
void backward_of(RowsShape shape, const void* x, const void* weight, const float* inv_rms, const void* dy,
                 void* dx, bool add_to_dx, float* workspace) {
  const auto run = add_to_dx ? &backward<T, true> : &backward<T, false>;
  run(shape, static_cast<const T*>(x), static_cast<const T*>(weight), inv_rms, static_cast<const T*>(dy),
      static_cast<T*>(dx), workspace);
}

}  // namespace

void rms_norm(RowsShape shape, Dtype dtype, const void* x, const void* weight, float eps, void* y,
              float* inv_rms, Stream) {
  if (dtype == Dtype::kFp32)
    forward(shape, static_cast<const float*>(x), static_cast<const float*>(weight), eps,
            static_cast<float*>(y), inv_rms);
  else
    forward(shape, static_cast<const Bf16*>(x), static_cast<const Bf16*>(weight), eps, static_cast<Bf16*>(y),
            inv_rms);
}

int64_t rms_norm_backward_workspace(RowsShape shape) {
  return ceil_div(shape.rows, rows_per_partial(shape)) * shape.dim;
}

void rms_norm_backward(RowsShape shape, Dtype dtype, const void* x, const void* weight, const float* inv_rms,
                       const void* dy, void* dx, bool add_to_dx, float* dweight, bool add_to_dweight,
                       float* workspace, Stream) {
  const auto run = dtype == Dtype::kFp32 ? &backward_of<float> : &backward_of<Bf16>;
  run(shape, x, weight, inv_rms, dy, dx, add_to_dx, workspace);
  add_partials(shape, workspace, ceil_div(shape.rows, rows_per_partial(shape)), dweight, add_to_dweight);
}

}  // namespace tycho::TYCHO_ISA
