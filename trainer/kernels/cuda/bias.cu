// The bias of a linear layer on the GPU; its gradient as partial sums over runs of rows, added in order.
#include "trainer/kernels/cuda/common.cuh"
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/cuda/partials.cuh"

namespace tycho::cuda {
namespace {

constexpr int kThreads = 128;

template <int width, class T>
__global__ void forward(int64_t dim, const T* bias, T* y) {
  const int64_t row = blockIdx.x, i = (static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x) * width;
  if (i >= dim) return;
  auto out = load<width>(y + row * dim + i);
  const auto added = load<width>(bias + i);
#pragma unroll
  for (int k = 0; k < width; ++k) out.at[k] += added.at[k];
  store<width>(y + row * dim + i, out);
}

constexpr int kSumRows = 8;

/// A block sums a tile of columns over a run of rows: rows of threads take every 8th row, then add up.
template <int width, class T>
__global__ void column_sums(RowsShape shape, const T* dy, float* partials) {
  __shared__ Pack<float, width> sums[kSumRows][kWarp];
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
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= shape.dim) return;
#pragma unroll
  for (int y = 1; y < kSumRows; ++y)
#pragma unroll
    for (int k = 0; k < width; ++k) sum.at[k] += sums[y][threadIdx.x].at[k];
  store<width>(partials + blockIdx.x * shape.dim + column, sum);
}

int64_t runs_of(RowsShape shape) {
  constexpr int64_t kMostRuns = 256, kLeastRows = 32;
  const int64_t runs = ceil_div(shape.rows, kLeastRows);
  return runs < kMostRuns ? runs : kMostRuns;
}

}  // namespace

void add_bias(RowsShape shape, Dtype dtype, const void* bias, void* y, Stream stream) {
  if (shape.rows == 0) return;
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    with_width<T>(packs_fit<T>(shape.dim, bias, y), [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      forward<kWidth>
          <<<dim3(shape.rows, ceil_div(shape.dim, kThreads * kWidth)), kThreads, 0, native(stream)>>>(
              shape.dim, static_cast<const T*>(bias), static_cast<T*>(y));
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
