// Rounding to fp8 on the GPU.
#include "trainer/kernels/cuda/common.cuh"
#include "trainer/kernels/cuda/fp8_codes.cuh"
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/cuda/partials.cuh"

namespace tycho::cuda {
namespace {

using T = __nv_bfloat16;
constexpr int kTile = 32;

/// Returns the largest magnitude of a block's row to every thread.
template <int width>
__device__ inline float row_amax(int64_t dim, const T* row) {
  uint32_t most = 0;
  for (int64_t i = threadIdx.x * width; i < dim; i += blockDim.x * width) {
    const auto value = load<width>(row + i);
#pragma unroll
    for (int k = 0; k < width; ++k) most = larger_of(most, magnitude(value.at[k]));
  }
  return __uint_as_float(block_max(most));
}

/// A block per row.
template <int width>
__global__ void row_maxima(int64_t dim, int64_t row_step, const T* x, float* amax) {
  const float most = row_amax<width>(dim, x + blockIdx.x * row_step);
  if (threadIdx.x == 0) amax[blockIdx.x] = most;
}

/// A block per row, which reads the row again from the cache.
template <Fp8Format format, int width>
__global__ void cast_by_row(int64_t dim, int64_t row_step, bool power_of_two, const T* x, const float* amax,
                            uint8_t* codes, float* factors) {
  const int64_t row = blockIdx.x;
  const float most = amax != nullptr ? amax[row] : row_amax<width>(dim, x + row * row_step);
  const float scale = fp8_scale({format, power_of_two}, most);
  if (threadIdx.x == 0) factors[row] = 1.0f / scale;
  for (int64_t i = threadIdx.x * width; i < dim; i += blockDim.x * width)
    store_codes<format>(load<width>(x + row * row_step + i), scale, codes + row * dim + i);
}

template <Fp8Format format, int width>
__global__ void cast_by_one(int64_t dim, int64_t row_step, bool power_of_two, const T* x, const float* amax,
                            uint8_t* codes, float* factors) {
  const int64_t row = blockIdx.x;
  const float scale = fp8_scale({format, power_of_two}, amax[0]);
  if (threadIdx.x == 0) factors[row] = 1.0f / scale;
  for (int64_t i = threadIdx.x * width; i < dim; i += blockDim.x * width)
    store_codes<format>(load<width>(x + row * row_step + i), scale, codes + row * dim + i);
}

/// A tile of 32 x 32 per block of 32 x 8 threads, turned in shared memory.
template <Fp8Format format>
__global__ void cast_by_column(RowsShape shape, int64_t row_step, bool power_of_two, const T* x,
                               const float* amax, uint8_t* codes, float* factors) {
  __shared__ uint8_t tile[kTile][kTile + 4];
  const int64_t first_column = static_cast<int64_t>(blockIdx.x) * kTile,
                first_row = static_cast<int64_t>(blockIdx.y) * kTile;
  const int64_t column = first_column + threadIdx.x;
  if (column < shape.dim) {
    const float scale = fp8_scale({format, power_of_two}, amax[column]);
    if (blockIdx.y == 0 && threadIdx.y == 0) factors[column] = 1.0f / scale;
    for (int y = threadIdx.y; y < kTile && first_row + y < shape.rows; y += kSumRows)
      tile[threadIdx.x][y] = static_cast<uint8_t>(
          fp8_code<format, uint32_t>(to_float(x[(first_row + y) * row_step + column]) * scale));
  }
  __syncthreads();
  const int64_t row = first_row + threadIdx.x;
  for (int y = threadIdx.y; y < kTile && first_column + y < shape.dim && row < shape.rows; y += kSumRows)
    codes[(first_column + y) * shape.rows + row] = tile[y][threadIdx.x];
}

/// Turns a tile as cast_by_column does.
__global__ void turn_tile(RowsShape shape, const uint8_t* codes, const float* factor, uint8_t* turned,
                          float* factors) {
  __shared__ uint8_t tile[kTile][kTile + 4];
  const int64_t first_column = static_cast<int64_t>(blockIdx.x) * kTile,
                first_row = static_cast<int64_t>(blockIdx.y) * kTile;
  const int64_t column = first_column + threadIdx.x;
  if (column < shape.dim) {
    if (blockIdx.y == 0 && threadIdx.y == 0) factors[column] = *factor;
    for (int y = threadIdx.y; y < kTile && first_row + y < shape.rows; y += kSumRows)
      tile[threadIdx.x][y] = codes[(first_row + y) * shape.dim + column];
  }
  __syncthreads();
  const int64_t row = first_row + threadIdx.x;
  for (int y = threadIdx.y; y < kTile && first_column + y < shape.dim && row < shape.rows; y += kSumRows)
    turned[(first_column + y) * shape.rows + row] = tile[y][threadIdx.x];
}

/// Finds the maxima of a tile of columns over a run of rows per block.
template <int width>
__global__ void column_maxima(RowsShape shape, int64_t row_step, const T* x, float* partials) {
  __shared__ uint32_t most[kSumRows][kWarp * width];
  const int64_t column = (static_cast<int64_t>(blockIdx.y) * kWarp + threadIdx.x) * width;
  const int64_t run = ceil_div(shape.rows, gridDim.x), first = blockIdx.x * run;
  const int64_t end = first + run < shape.rows ? first + run : shape.rows;
  uint32_t found[width] = {};
  if (column < shape.dim)
    for (int64_t row = first + threadIdx.y; row < end; row += kSumRows) {
      const auto value = load<width>(x + row * row_step + column);
#pragma unroll
      for (int k = 0; k < width; ++k) found[k] = larger_of(found[k], magnitude(value.at[k]));
    }
#pragma unroll
  for (int k = 0; k < width; ++k) most[threadIdx.y][threadIdx.x * width + k] = found[k];
  __syncthreads();
  if (threadIdx.y > 0 || column >= shape.dim) return;
  for (int k = 0; k < width; ++k) {
    for (int y = 1; y < kSumRows; ++y) found[k] = larger_of(found[k], most[y][threadIdx.x * width + k]);
    partials[blockIdx.x * shape.dim + column + k] = __uint_as_float(found[k]);
  }
}

__global__ void merge_maxima(int64_t dim, int64_t runs, const float* partials, float* amax) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= dim) return;
  uint32_t most = 0;
  for (int64_t run = 0; run < runs; ++run)
    most = larger_of(most, __float_as_uint(partials[run * dim + column]));
  amax[column] = __uint_as_float(most);
}

__global__ void spread_maximum(int64_t dim, float* amax) {
  uint32_t most = 0;
  for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) most = larger_of(most, __float_as_uint(amax[i]));
  most = block_max(most);
  for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) amax[i] = __uint_as_float(most);
}

template <Fp8Format value>
struct Format {
  static constexpr Fp8Format format = value;
};
/// Calls body(Format<format>).
template <class Body>
void with_format(Fp8Format format, const Body& body) {
  if (format == Fp8Format::kE4m3)
    body(Format<Fp8Format::kE4m3>{});
  else
    body(Format<Fp8Format::kE5m2>{});
}

/// True if rows of x, and of codes, can be moved in packs.
bool code_packs_fit(RowsShape shape, int64_t row_step, const void* x, const void* codes) {
  return packs_fit<T>(shape.dim, x, codes) && row_step % kFullWidth<T> == 0;
}

}  // namespace

void fp8_row_amax(RowsShape shape, int64_t row_step, const void* x, float* amax, Stream stream) {
  if (shape.rows == 0) return;
  with_width<T>(code_packs_fit(shape, row_step, x, x), [&](auto width) {
    constexpr int kWidth = decltype(width)::count;
    row_maxima<kWidth><<<shape.rows, threads_for(shape.dim / kWidth, 256), 0, native(stream)>>>(
        shape.dim, row_step, static_cast<const T*>(x), amax);
  });
  check_launch("fp8_row_amax");
}

void fp8_rows(RowsShape shape, int64_t row_step, Fp8Rule rule, const void* x, const float* amax,
              uint8_t* codes, float* factors, Stream stream) {
  if (shape.rows == 0) return;
  with_format(rule.format, [&](auto known) {
    with_width<T>(code_packs_fit(shape, row_step, x, codes), [&](auto width) {
      constexpr Fp8Format kFormat = decltype(known)::format;
      constexpr int kWidth = decltype(width)::count;
      cast_by_row<kFormat, kWidth><<<shape.rows, threads_for(shape.dim / kWidth, 256), 0, native(stream)>>>(
          shape.dim, row_step, rule.power_of_two, static_cast<const T*>(x), amax, codes, factors);
    });
  });
  check_launch("fp8_rows");
}

int64_t fp8_amax_workspace(RowsShape shape) { return runs_of(shape) * shape.dim; }

void fp8_amax(RowsShape shape, int64_t row_step, bool whole, const void* x, float* amax, float* workspace,
              Stream stream) {
  if (shape.dim == 0) return;
  const int64_t runs = runs_of(shape);
  if (runs > 0)
    with_width<T>(code_packs_fit(shape, row_step, x, x), [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      const dim3 grid(runs, ceil_div(shape.dim, kWarp * kWidth));
      column_maxima<kWidth><<<grid, dim3(kWarp, kSumRows), 0, native(stream)>>>(
          shape, row_step, static_cast<const T*>(x), workspace);
    });
  merge_maxima<<<ceil_div(shape.dim, 256), 256, 0, native(stream)>>>(shape.dim, runs, workspace, amax);
  if (whole) spread_maximum<<<1, 256, 0, native(stream)>>>(shape.dim, amax);
  check_launch("fp8_amax");
}

void fp8_cast(RowsShape shape, int64_t row_step, Fp8Rule rule, bool transposed, const void* x,
              const float* amax, uint8_t* codes, float* factors, Stream stream) {
  if (shape.rows == 0 || shape.dim == 0) return;
  const T* from = static_cast<const T*>(x);
  with_format(rule.format, [&](auto known) {
    constexpr Fp8Format kFormat = decltype(known)::format;
    if (transposed) {
      const dim3 grid(ceil_div(shape.dim, kTile), ceil_div(shape.rows, kTile));
      cast_by_column<kFormat><<<grid, dim3(kTile, kSumRows), 0, native(stream)>>>(
          shape, row_step, rule.power_of_two, from, amax, codes, factors);
      return;
    }
    with_width<T>(code_packs_fit(shape, row_step, x, codes), [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      cast_by_one<kFormat, kWidth><<<shape.rows, threads_for(shape.dim / kWidth, 256), 0, native(stream)>>>(
          shape.dim, row_step, rule.power_of_two, from, amax, codes, factors);
    });
  });
  check_launch("fp8_cast");
}

void fp8_turn(RowsShape shape, const uint8_t* codes, const float* factor, uint8_t* turned, float* factors,
              Stream stream) {
  if (shape.rows == 0 || shape.dim == 0) return;
  const dim3 grid(ceil_div(shape.dim, kTile), ceil_div(shape.rows, kTile));
  turn_tile<<<grid, dim3(kTile, kSumRows), 0, native(stream)>>>(shape, codes, factor, turned, factors);
  check_launch("fp8_turn");
}

}  // namespace tycho::cuda
