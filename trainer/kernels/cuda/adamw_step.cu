// AdamW on the GPU: every element is read and written once, four at a time.
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/cuda/weights.cuh"
#include "trainer/kernels/twins/adamw_factors.h"

namespace tycho::cuda {
namespace {

template <WeightForm form>
struct AdamWUpdate {
  Weights<form> weights;
  AdamWFactors f;
  const float *grad_scale, *grads;
  float *m, *v;

  template <class W>
  __device__ void operator()(int64_t i, W) const {
    constexpr int kWidth = W::count;
    const float scale = *grad_scale;
    const auto grad = load<kWidth>(grads + i);
    auto mean = load<kWidth>(m + i), square = load<kWidth>(v + i), weight = weights.template read<kWidth>(i);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const float g = grad.at[k] * scale;
      mean.at[k] = mean.at[k] * f.beta1 + g * f.one_minus_beta1;
      square.at[k] = square.at[k] * f.beta2 + g * g * f.one_minus_beta2;
      weight.at[k] = weight.at[k] * f.keep -
                     mean.at[k] / (sqrtf(square.at[k]) * f.inv_sqrt_correction2 + f.eps) * f.step_size;
    }
    store<kWidth>(m + i, mean);
    store<kWidth>(v + i, square);
    weights.template write<kWidth>(i, weight);
  }
};

}  // namespace

void adamw_step(int64_t n, AdamWScalars scalars, const float* grad_scale, OptimizedWeights optimized,
                const float* grads, float* m, float* v, Stream stream) {
  if (n == 0) return;
  const bool packs = packs_fit<float>(n, grads, m, v) && weight_packs_fit(optimized);
  with_weight_form<Weights>(optimized, [&]<WeightForm form>(const Weights<form>& weights) {
    const AdamWUpdate<form> update{weights, adamw_factors(scalars), grad_scale, grads, m, v};
    launch_over_elements<float>(n, packs, update, native(stream));
  });
  check_launch("adamw_step");
}

}  // namespace tycho::cuda
