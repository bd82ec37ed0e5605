// Functions of a logit before the softmax, on the GPU: scale and soft cap.
#pragma once
#include "trainer/kernels/cuda/common.cuh"

namespace tycho::cuda {

// Result z of a logit x, and its slope where the result is z.
struct PlainLogits {
  __device__ float operator()(float x) const { return x; }
  __device__ float slope(float) const { return 1.0f; }
};
struct ScaledLogits {
  float scale;
  __device__ float operator()(float x) const { return x * scale; }
  __device__ float slope(float) const { return scale; }
};
struct CappedLogits {
  float scale, cap, inverse_cap;
  __device__ float operator()(float x) const { return tanhf(x * (scale * inverse_cap)) * cap; }
  __device__ float slope(float z) const {
    const float part = z * inverse_cap;
    return (1.0f - part * part) * scale;
  }
};

/// Calls body with the function object for these rules.
template <class Body>
void with_logit_curve(LogitRules rules, const Body& body) {
  if (rules.softcap != 0)
    body(CappedLogits{rules.scale, rules.softcap, 1.0f / rules.softcap});
  else if (rules.scale != 1)
    body(ScaledLogits{rules.scale});
  else
    body(PlainLogits{});
}

}  // namespace tycho::cuda
