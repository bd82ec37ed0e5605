// The rotation of a pair of packs, shared by the kernels that rotate.
#pragma once
#include "trainer/kernels/cuda/common.cuh"

namespace tycho::cuda {

/// Rotates (a, b) in place by the angles whose cosines and sines are at `cosine` and `half` elements behind
/// it; sign -1 applies the transpose.
template <int width>
__device__ inline void turn(Pack<float, width>& a, Pack<float, width>& b, const float* cosine, int half,
                            float sign) {
  const auto c = load<width>(cosine), s = load<width>(cosine + half);
#pragma unroll
  for (int k = 0; k < width; ++k) {
    const float sine = s.at[k] * sign, low = a.at[k];
    a.at[k] = low * c.at[k] - b.at[k] * sine;
    b.at[k] = b.at[k] * c.at[k] + low * sine;
  }
}

}  // namespace tycho::cuda
