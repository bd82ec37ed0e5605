// Kernels over the elements of a flat buffer.
#pragma once
#include "trainer/kernels/cuda/common.cuh"

namespace tycho::cuda {

/// Runs body(i, Width<w>) over n elements in packs of w.
template <int width, class Body>
__global__ void over_elements(int64_t n, Body body) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x * width;
  for (int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * width; i < n; i += stride)
    body(i, Width<width>{});
}

/// Launches over_elements in packs of 16 bytes of T when `packs`, which requires packs_fit<T>(n, every
/// pointer).
template <class T, class Body>
void launch_over_elements(int64_t n, bool packs, const Body& body, cudaStream_t stream) {
  constexpr int kThreads = 256;
  constexpr int64_t kMostBlocks = 1 << 16;
  with_width<T>(packs, [&](auto width) {
    constexpr int kWidth = decltype(width)::count;
    const int64_t wanted = ceil_div(n, kThreads * kWidth);
    const auto blocks = static_cast<unsigned>(wanted < kMostBlocks ? wanted : kMostBlocks);
    over_elements<kWidth><<<blocks, kThreads, 0, stream>>>(n, body);
  });
}

}  // namespace tycho::cuda
