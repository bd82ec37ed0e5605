// The bias of a linear layer on the GPU; its gradient as partial sums over runs of rows, added in order.
#include "trainer/kernels/cuda/common.cuh"
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/cuda/partials.cuh"

namespace tycho::cuda {
namespace {

constexpr int kThreads = 128;

template <int width, class T>
__global__ void forward(int64_t dim, const T* bias, const T* x, T* y) {
  const int64_t row = blockIdx.x, i = (static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x) * width;
  if (i >= dim) return;
  auto out = load<width>(x + row * dim + i);
  const auto added = load<width>(bias + i);
#pragma unroll
  for (int k = 0; k < width; ++k) out.at[k] += added.at[k];
  store<width>(y + row * dim + i, out);
}

/// Sums a tile of columns over a run of rows per block: each row of threads takes every 8th row, then their
/// sums are added.
template <int width, class T>
__global__ void column_sums(RowsShape shape, const T* dy, float* partials) {
  const int64_t column = (static_cast<int64_t>(blockIdx.y) * kWarp + threadIdx.x) * width;
  const int64_t run = ceil_div(shape.rows, gridDim.x), first = blockIdx.x * run;
  const int64_t end = first + run < shape.rows ? first + run : shape.rows;
  Pack<float, width> sum{};
  if (column < shape.dim)
    for (int64_t row = first + threadIdx.y; row < end; row += kSumRows) {
      const auto value = load<width>(dy + row * shape.dim + column);
#pragma unroll
      for (int k = 0; k < width; ++k) sum.at[k] += value.at[k];
    }
  store_column_sums<width>(shape.dim, column, sum, partials);
}

}  // namespace

void add_bias(RowsShape shape, Dtype dtype, const void* bias, const void* x, void* y, Stream stream) {
  if (shape.rows == 0) return;
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    with_width<T>(packs_fit<T>(shape.dim, bias, x, y), [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      forward<kWidth>
          <<<dim3(shape.rows, ceil_div(shape.dim, kThreads * kWidth)), kThreads, 0, native(stream)>>>(
              shape.dim, static_cast<const T*>(bias), static_cast<const T*>(x), static_cast<T*>(y));
    });
  });
  check_launch("add_bias");
}

int64_t bias_gradient_workspace(RowsShape shape) { return runs_of(shape) * shape.dim; }

void bias_gradient(RowsShape shape, Dtype dtype, const void* dy, float* dbias, bool add, float* workspace,
                   Stream stream) {
  const int64_t runs = runs_of(shape);
  if (runs > 0)
    with_type(dtype, [&](auto* type) {
      using T = std::remove_pointer_t<decltype(type)>;
      with_width<T>(packs_fit<T>(shape.dim, dy, workspace), [&](auto width) {
        constexpr int kWidth = decltype(width)::count;
        const dim3 grid(runs, ceil_div(shape.dim, kWarp * kWidth));
        column_sums<kWidth>
            <<<grid, dim3(kWarp, kSumRows), 0, native(stream)>>>(shape, static_cast<const T*>(dy), workspace);
      });
    });
  add_partials(shape.dim, runs, workspace, dbias, add, native(stream));
  check_launch("bias_gradient");
}

}  // namespace tycho::cuda
