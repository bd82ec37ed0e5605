// Dropout on the GPU: a thread draws the words of neighbouring counters and uses all four of each.
#include "trainer/kernels/cuda/common.cuh"
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/twins/dropout_bits.h"
#include "trainer/kernels/twins/philox_words.h"

namespace tycho::cuda {
namespace {

constexpr int kThreads = 128;

template <class T>
struct Drop {
  RowsShape shape;
  uint64_t key, first_row;
  DropoutFactors factors;
  const T *x, *residual;
  T* y;
};

/// Applies dropout to the pack at element i of the matrix, with word `word` of each counter.
template <int width, class T>
__device__ void drop_pack(const Drop<T>& a, int64_t i, const uint32_t (&words)[width][4], int word) {
  auto value = load<width>(a.x + i);
  Pack<float, width> added{};
  if (a.residual) added = load<width>(a.residual + i);
#pragma unroll
  for (int k = 0; k < width; ++k)
    value.at[k] =
        (words[k][word] >= a.factors.first_kept ? value.at[k] * a.factors.scale : 0.0f) + added.at[k];
  store<width>(a.y + i, value);
}

/// The bounds leave 72 registers: seven blocks on a multiprocessor.
template <int width, class T>
__global__ void __launch_bounds__(kThreads, 7) drop(Drop<T> a) {
  constexpr int64_t kThreadsPerBlock = kDropoutCounters / width;
  const int64_t row = blockIdx.x, index = static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x;
  const int64_t block = index / kThreadsPerBlock, counter = index % kThreadsPerBlock * width;
  const int64_t first = block * kDropoutBlock + counter;
  if (first >= a.shape.dim) return;
  uint32_t words[width][4];
#pragma unroll
  for (int k = 0; k < width; ++k)
    philox_words(a.key, static_cast<uint64_t>(block * kDropoutCounters + counter + k), a.first_row + row,
                 words[k]);
#pragma unroll
  for (int word = 0; word < 4; ++word)
    if (const int64_t i = first + word * kDropoutCounters; i < a.shape.dim)
      drop_pack<width>(a, row * a.shape.dim + i, words, word);
}

}  // namespace

void dropout(RowsShape shape, Dtype dtype, DropoutMask mask, const void* x, const void* residual, void* y,
             Stream stream) {
  if (shape.rows == 0) return;
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const Drop<T> arguments = {shape,
                               mask.key,
                               static_cast<uint64_t>(mask.first_row),
                               dropout_factors(mask),
                               static_cast<const T*>(x),
                               static_cast<const T*>(residual),
                               static_cast<T*>(y)};
    with_width<T>(packs_fit<T>(shape.dim, x, residual, y), [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      const int64_t threads = ceil_div(shape.dim, kDropoutBlock) * (kDropoutCounters / kWidth);
      drop<kWidth><<<dim3(shape.rows, ceil_div(threads, kThreads)), kThreads, 0, native(stream)>>>(arguments);
    });
  });
  check_launch("dropout");
}

}  // namespace tycho::cuda
