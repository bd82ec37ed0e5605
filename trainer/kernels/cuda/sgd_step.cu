// SGD with momentum on the GPU: every element is read and written once, four at a time.
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/cuda/weights.cuh"

namespace tycho::cuda {
namespace {

template <WeightForm form>
struct SgdUpdate {
  Weights<form> weights;
  float lr, mu, decay;
  bool nesterov;
  const float *grad_scale, *grads;
  float* momentum;

  template <class W>
  __device__ void operator()(int64_t i, W) const {
    constexpr int kWidth = W::count;
    const float scale = *grad_scale;
    auto step = load<kWidth>(grads + i), weight = weights.template read<kWidth>(i);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) step.at[k] = step.at[k] * scale + weight.at[k] * decay;
    if (momentum != nullptr) {
      auto velocity = load<kWidth>(momentum + i);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        velocity.at[k] = velocity.at[k] * mu + step.at[k];
        step.at[k] = nesterov ? step.at[k] + velocity.at[k] * mu : velocity.at[k];
      }
      store<kWidth>(momentum + i, velocity);
    }
#pragma unroll
    for (int k = 0; k < kWidth; ++k) weight.at[k] -= step.at[k] * lr;
    weights.template write<kWidth>(i, weight);
  }
};

}  // namespace

void sgd_step(int64_t n, SgdScalars s, const float* grad_scale, OptimizedWeights optimized,
              const float* grads, float* momentum, Stream stream) {
  if (n == 0) return;
  const bool packs = packs_fit<float>(n, grads, momentum) && weight_packs_fit(optimized);
  with_weight_form<Weights>(optimized, [&]<WeightForm form>(const Weights<form>& weights) {
    const SgdUpdate<form> update{weights,
                                 static_cast<float>(s.lr),
                                 static_cast<float>(s.momentum),
                                 static_cast<float>(s.weight_decay),
                                 s.nesterov,
                                 grad_scale,
                                 grads,
                                 momentum};
    launch_over_elements<float>(n, packs, update, native(stream));
  });
  check_launch("sgd_step");
}

}  // namespace tycho::cuda
