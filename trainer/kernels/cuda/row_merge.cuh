// Parts of a row that threads of a block have reduced, merged in a fixed order.
#pragma once
#include "trainer/kernels/cuda/common.cuh"

namespace tycho::cuda {

// A Part has merge(Part, Part), and each(f), which returns the part with f applied to every number.

template <class Part>
__device__ Part warp_merge(Part x) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    x = merge(x, x.each([&](float number) { return __shfl_xor_sync(0xffffffffu, number, distance); }));
  return x;
}

/// Returns the merged parts of all threads to every thread. `empty` is the part of a thread without elements.
/// Requires that blockDim.x is a multiple of 32. To be called once by a kernel.
template <class Part>
__device__ Part block_merge(Part x, Part empty) {
  __shared__ Part parts[kWarp];
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
  x = warp_merge(x);
  if (lane == 0) parts[warp] = x;
  __syncthreads();
  return warp_merge(lane < warps ? parts[lane] : empty);
}

}  // namespace tycho::cuda
