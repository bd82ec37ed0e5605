// Sums over rows in a fixed order: partial rows, which are then added up.
#pragma once
#include "trainer/kernels/cuda/common.cuh"

namespace tycho::cuda {

/// Sums partial rows, 32 columns a block: the rows of threads divide the partial rows, and their sums are
/// added in order.
static __global__ void sum_partials(int64_t dim, int64_t runs, const float* partials, float* out, bool add) {
  __shared__ float sums[kWarp][kWarp + 1];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x;
  float sum = 0;
  if (column < dim)
    for (int64_t run = threadIdx.y; run < runs; run += kWarp) sum += partials[run * dim + column];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  const float total = warp_sum(sums[threadIdx.x][threadIdx.y]);
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.y;
  if (threadIdx.x == 0 && at < dim) out[at] = total + (add ? out[at] : 0.0f);
}

/// out [dim] = the sum of partials [runs, dim], or += it.
static inline void add_partials(int64_t dim, int64_t runs, const float* partials, float* out, bool add,
                                cudaStream_t stream) {
  if (dim > 0)
    sum_partials<<<ceil_div(dim, kWarp), dim3(kWarp, kWarp), 0, stream>>>(dim, runs, partials, out, add);
}

/// Returns the number of partial rows of a bias, each the sums of a run of rows.
static inline int64_t runs_of(RowsShape shape) {
  constexpr int64_t kMostRuns = 256, kLeastRows = 32;
  const int64_t runs = ceil_div(shape.rows, kLeastRows);
  return runs < kMostRuns ? runs : kMostRuns;
}

/// Number of rows of threads of a block that sums columns: 32 x kSumRows threads, each with `width` columns.
constexpr int kSumRows = 8;

/// Stores the sums of the threads of a column to partial row blockIdx.x. Every thread of the block must call.
template <int width>
__device__ inline void store_column_sums(int64_t dim, int64_t column, Pack<float, width> sum,
                                         float* partials) {
  __shared__ Pack<float, width> sums[kSumRows][kWarp];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= dim) return;
#pragma unroll
  for (int y = 1; y < kSumRows; ++y)
#pragma unroll
    for (int k = 0; k < width; ++k) sum.at[k] += sums[y][threadIdx.x].at[k];
  store<width>(partials + blockIdx.x * dim + column, sum);
}

/// Returns the number of partial rows of a norm's weight: enough blocks to keep the GPU busy, fewer for wide
/// rows, and two for each multiprocessor of an H100.
static inline int64_t runs_of(const NormShape& shape) {
  const int64_t lines = shape.rows * shape.groups;
  const int64_t wanted = (int64_t{1} << 20) / (shape.dim > 0 ? shape.dim : 1);
  const int64_t runs = wanted < 264 ? 264 : wanted > 1024 ? 1024 : wanted;
  return lines < runs ? lines : runs;
}

constexpr int kMostNormThreads = 512;

/// Returns the threads of a block for the backward of norms: all of them work on one line, or, where a warp
/// is enough for a line, several warps on one line each.
static inline dim3 norm_threads(int64_t dim, int width) {
  constexpr int kWarpsPerBlock = 8;
  const int threads = threads_for(dim / width, kMostNormThreads);
  return dim3(threads, threads > kWarp ? 1 : kWarpsPerBlock);
}

/// Stores the sums [blockDim.y, dim] of the block's lines, added in order, to partial row blockIdx.x of
/// `partials`. Every thread of the block must call, after a barrier.
template <int width>
__device__ inline void store_line_sums(int64_t dim, const float* sums, float* partials) {
  if (threadIdx.y > 0) return;
  for (int64_t i = threadIdx.x * width; i < dim; i += blockDim.x * width) {
    auto total = load<width>(sums + i);
    for (unsigned y = 1; y < blockDim.y; ++y) {
      const auto other = load<width>(sums + y * dim + i);
#pragma unroll
      for (int k = 0; k < width; ++k) total.at[k] += other.at[k];
    }
    store<width>(partials + blockIdx.x * dim + i, total);
  }
}

/// True if every row and group can be moved in packs of 16 bytes.
template <class T, class... Pointers>
bool norm_packs_fit(const NormShape& shape, const Pointers*... pointers) {
  const int64_t steps = shape.x_step | shape.y_step | shape.dx_step;
  return packs_fit<T>(shape.dim, pointers...) && steps % kFullWidth<T> == 0;
}

}  // namespace tycho::cuda
