// Lion on the GPU: every element is read and written once, four at a time.
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/cuda/weights.cuh"

namespace tycho::cuda {
namespace {

struct LionFactors {
  float lr, beta1, beta2, rest1, rest2, keep;
};

/// Returns -1, 0 or 1; NaN stays NaN.
__device__ inline float sign(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x; }

template <WeightForm form>
struct LionUpdate {
  Weights<form> weights;
  LionFactors f;
  const float *grad_scale, *grads;
  float* m;

  template <class W>
  __device__ void operator()(int64_t i, W) const {
    constexpr int kWidth = W::count;
    const float scale = *grad_scale;
    const auto grad = load<kWidth>(grads + i);
    auto mean = load<kWidth>(m + i), weight = weights.template read<kWidth>(i);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const float g = grad.at[k] * scale;
      weight.at[k] = weight.at[k] * f.keep - sign(mean.at[k] * f.beta1 + g * f.rest1) * f.lr;
      mean.at[k] = mean.at[k] * f.beta2 + g * f.rest2;
    }
    store<kWidth>(m + i, mean);
    weights.template write<kWidth>(i, weight);
  }
};

}  // namespace

void lion_step(int64_t n, LionScalars s, const float* grad_scale, OptimizedWeights optimized,
               const float* grads, float* m, Stream stream) {
  if (n == 0) return;
  const LionFactors factors = {static_cast<float>(s.lr),        static_cast<float>(s.beta1),
                               static_cast<float>(s.beta2),     static_cast<float>(1 - s.beta1),
                               static_cast<float>(1 - s.beta2), static_cast<float>(1 - s.decay)};
  const bool packs = packs_fit<float>(n, grads, m) && weight_packs_fit(optimized);
  with_weight_form<Weights>(optimized, [&]<WeightForm form>(const Weights<form>& weights) {
    const LionUpdate<form> update{weights, factors, grad_scale, grads, m};
    launch_over_elements<float>(n, packs, update, native(stream));
  });
  check_launch("lion_step");
}

}  // namespace tycho::cuda
