// The tables of tokens and positions on the GPU. Backward sorts positions by token, so that each row of the
// table is summed by one block in a fixed order: no atomics.
#include <cub/device/device_radix_sort.cuh>

#include "trainer/kernels/cuda/common.cuh"
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/cuda/status.h"

namespace tycho::cuda {
namespace {

template <int width, class T>
__global__ void look_up(int64_t dim, const int32_t* tokens, const T* table, T* y) {
  const int64_t row = blockIdx.x;
  const T* from = table + tokens[row] * dim;
  for (int64_t i = threadIdx.x * width; i < dim; i += blockDim.x * width)
    *reinterpret_cast<Pack<T, width>*>(y + row * dim + i) =
        *reinterpret_cast<const Pack<T, width>*>(from + i);
}

template <int width, class T>
__global__ void look_up_both(int64_t dim, const int32_t* tokens, const T* table, PositionRows positions,
                             T* y) {
  const int64_t row = blockIdx.x;
  const T* token = table + tokens[row] * dim;
  const T* position =
      static_cast<const T*>(positions.table) + (positions.first_position + row % positions.seq) * dim;
  for (int64_t i = threadIdx.x * width; i < dim; i += blockDim.x * width) {
    auto out = load<width>(token + i);
    const auto added = load<width>(position + i);
#pragma unroll
    for (int k = 0; k < width; ++k) out.at[k] += added.at[k];
    store<width>(y + row * dim + i, out);
  }
}

/// Adds up a pack of one position over the batch per thread.
template <int width, class T>
__global__ void sum_batch(RowsShape shape, int64_t seq, const T* dy, float* dtable, bool add) {
  const int64_t position = blockIdx.x;
  const int64_t i = (static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * width;
  if (i >= shape.dim) return;
  float* out = dtable + position * shape.dim + i;
  Pack<float, width> sum{};
  if (add) sum = load<width>(out);
  for (int64_t row = position; row < shape.rows; row += seq) {
    const auto value = load<width>(dy + row * shape.dim + i);
#pragma unroll
    for (int k = 0; k < width; ++k) sum.at[k] += value.at[k];
  }
  store<width>(out, sum);
}

__global__ void count_up(int64_t n, int32_t* positions) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) positions[i] = static_cast<int32_t>(i);
}

constexpr int kSumRows = 8;

/// Sums a run of equal tokens per block, if the block's index starts one: each row of threads takes every 8th
/// position, then their sums are added.
template <int width, class T>
__global__ void add_runs(RowsShape shape, const int32_t* tokens, const int32_t* positions, const T* dy,
                         float* dtable) {
  __shared__ Pack<float, width> sums[kSumRows][kWarp];
  const int64_t first = blockIdx.x;
  const int32_t token = tokens[first];
  if (first > 0 && tokens[first - 1] == token) return;
  for (int64_t tile = static_cast<int64_t>(blockIdx.y) * kWarp * width; tile < shape.dim;
       tile += gridDim.y * kWarp * width) {
    const int64_t column = tile + threadIdx.x * width;
    Pack<float, width> sum{};
    if (column < shape.dim)
      for (int64_t i = first + threadIdx.y; i < shape.rows && tokens[i] == token; i += kSumRows) {
        const auto value = load<width>(dy + positions[i] * shape.dim + column);
#pragma unroll
        for (int k = 0; k < width; ++k) sum.at[k] += value.at[k];
      }
    __syncthreads();
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || column >= shape.dim) continue;
    float* out = dtable + token * shape.dim + column;
    auto total = load<width>(out);
#pragma unroll
    for (int y = 0; y < kSumRows; ++y)
#pragma unroll
      for (int k = 0; k < width; ++k) total.at[k] += sums[y][threadIdx.x].at[k];
    store<width>(out, total);
  }
}

// Layout of the workspace: sorted tokens, positions, sorted positions, and the memory of the sort itself,
// each at a multiple of 256 bytes.
struct Layout {
  int64_t list_bytes;
  size_t sort_bytes;
  int token_bits;
};

Layout layout_of(int64_t rows, int64_t vocab) {
  Layout layout{ceil_div(rows * static_cast<int64_t>(sizeof(int32_t)), 256) * 256, 0, 1};
  while ((int64_t{1} << layout.token_bits) < vocab) ++layout.token_bits;
  const int32_t* in = nullptr;
  int32_t* out = nullptr;
  check_status("embedding_backward", "the bytes that sorting the tokens takes",
               cub::DeviceRadixSort::SortPairs(nullptr, layout.sort_bytes, in, out, in, out,
                                               static_cast<int>(rows), 0, layout.token_bits));
  return layout;
}

}  // namespace

void embedding(RowsShape shape, Dtype dtype, const int32_t* tokens, const void* table, PositionRows positions,
               void* y, Stream stream) {
  if (shape.rows == 0) return;
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    with_width<T>(packs_fit<T>(shape.dim, table, positions.table, y), [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      const int threads = threads_for(shape.dim / kWidth, 256);
      if (positions.table)
        look_up_both<kWidth><<<shape.rows, threads, 0, native(stream)>>>(
            shape.dim, tokens, static_cast<const T*>(table), positions, static_cast<T*>(y));
      else
        look_up<kWidth><<<shape.rows, threads, 0, native(stream)>>>(
            shape.dim, tokens, static_cast<const T*>(table), static_cast<T*>(y));
    });
  });
  check_launch("embedding");
}

int64_t embedding_backward_workspace(RowsShape shape, int64_t vocab) {
  const Layout layout = layout_of(shape.rows, vocab);
  return 3 * layout.list_bytes + static_cast<int64_t>(layout.sort_bytes);
}

void embedding_backward(RowsShape shape, Dtype dtype, const int32_t* tokens, int64_t vocab, const void* dy,
                        float* dtable, void* workspace, Stream stream) {
  if (shape.rows == 0) return;
  Layout layout = layout_of(shape.rows, vocab);
  char* bytes = static_cast<char*>(workspace);
  int32_t* sorted_tokens = reinterpret_cast<int32_t*>(bytes);
  int32_t* positions = reinterpret_cast<int32_t*>(bytes + layout.list_bytes);
  int32_t* sorted_positions = reinterpret_cast<int32_t*>(bytes + 2 * layout.list_bytes);
  count_up<<<ceil_div(shape.rows, 256), 256, 0, native(stream)>>>(shape.rows, positions);
  check_status("embedding_backward", "the tokens sorted",
               cub::DeviceRadixSort::SortPairs(
                   bytes + 3 * layout.list_bytes, layout.sort_bytes, tokens, sorted_tokens, positions,
                   sorted_positions, static_cast<int>(shape.rows), 0, layout.token_bits, native(stream)));
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    with_width<T>(packs_fit<T>(shape.dim, dy, dtable), [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      const dim3 grid(shape.rows,
                      ceil_div(shape.dim, kWarp * kWidth) < 64 ? ceil_div(shape.dim, kWarp * kWidth) : 64);
      add_runs<kWidth><<<grid, dim3(kWarp, kSumRows), 0, native(stream)>>>(
          shape, sorted_tokens, sorted_positions, static_cast<const T*>(dy), dtable);
    });
  });
  check_launch("embedding_backward");
}

void position_gradient(RowsShape shape, Dtype dtype, int64_t seq, const void* dy, float* dtable, bool add,
                       Stream stream) {
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    with_width<T>(packs_fit<T>(shape.dim, dy, dtable), [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      const int threads = threads_for(shape.dim / kWidth, 256);
      sum_batch<kWidth><<<dim3(seq, ceil_div(shape.dim, threads * kWidth)), threads, 0, native(stream)>>>(
          shape, seq, static_cast<const T*>(dy), dtable, add);
    });
  });
  check_launch("position_gradient");
}

}  // namespace tycho::cuda
