// Passes over flat buffers on the GPU: sum of squares, casts, accumulation.
#include "trainer/kernels/cuda/common.cuh"
#include "trainer/kernels/cuda/kernels.h"

namespace tycho::cuda {
namespace {

constexpr int kThreads = 256;
// Equally many partial sums on every GPU, so that the result does not depend on its size.
constexpr int kPartials = 1024;
// One buffer per device: calls follow each other on the run's stream.
__device__ double partials[kPartials];

template <int width>
__global__ void sum_parts(int64_t n, const float* x) {
  double sum = 0;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x * width;
  for (int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * width; i < n;
       i += stride) {
    const auto value = load<width>(x + i);
#pragma unroll
    for (int k = 0; k < width; ++k)
      sum += static_cast<double>(value.at[k]) * static_cast<double>(value.at[k]);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

__global__ void add_parts(double* sum) {
  const double total = block_sum(partials[threadIdx.x]);
  if (threadIdx.x == 0) *sum += total;
}

template <int width, class From, class To>
__global__ void copy(int64_t n, const From* x, To* y) {
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * width;
  if (i < n) store<width>(y + i, load<width>(x + i));
}

template <int width, class T>
__global__ void add(int64_t n, const T* x, float* y) {
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * width;
  if (i >= n) return;
  auto sum = load<width>(y + i);
  const auto value = load<width>(x + i);
#pragma unroll
  for (int k = 0; k < width; ++k) sum.at[k] += value.at[k];
  store<width>(y + i, sum);
}

}  // namespace

void sum_of_squares(int64_t n, const float* x, double* sum, Stream stream) {
  with_width<float>(packs_fit<float>(n, x), [&](auto width) {
    sum_parts<decltype(width)::count><<<kPartials, kThreads, 0, native(stream)>>>(n, x);
  });
  add_parts<<<1, kPartials, 0, native(stream)>>>(sum);
  check_launch("sum_of_squares");
}

void cast(int64_t n, Dtype from, const void* x, Dtype to, void* y, Stream stream) {
  if (n == 0) return;
  with_type(from, [&](auto* from_type) {
    with_type(to, [&](auto* to_type) {
      using From = std::remove_pointer_t<decltype(from_type)>;
      using To = std::remove_pointer_t<decltype(to_type)>;
      with_width<__nv_bfloat16>(packs_fit<__nv_bfloat16>(n, x, y), [&](auto width) {
        constexpr int kWidth = decltype(width)::count;
        copy<kWidth><<<ceil_div(n, kThreads * kWidth), kThreads, 0, native(stream)>>>(
            n, static_cast<const From*>(x), static_cast<To*>(y));
      });
    });
  });
  check_launch("cast");
}

void add_to_fp32(int64_t n, Dtype dtype, const void* x, float* y, Stream stream) {
  if (n == 0) return;
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    with_width<T>(packs_fit<T>(n, x, y), [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      add<kWidth>
          <<<ceil_div(n, kThreads * kWidth), kThreads, 0, native(stream)>>>(n, static_cast<const T*>(x), y);
    });
  });
  check_launch("add_to_fp32");
}

}  // namespace tycho::cuda
