// Elementwise steps of Muon on the GPU.
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/cuda/weights.cuh"

namespace tycho::cuda {
namespace {

template <class T>
struct MomentumUpdate {
  float mu, rest;
  bool nesterov;
  const float *grad_scale, *grads;
  float* buffer;
  T* update;

  template <class W>
  __device__ void operator()(int64_t i, W) const {
    constexpr int kWidth = W::count;
    const float scale = *grad_scale;
    auto grad = load<kWidth>(grads + i), mean = load<kWidth>(buffer + i);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const float g = grad.at[k] * scale;
      mean.at[k] = mean.at[k] * mu + g * rest;
      grad.at[k] = nesterov ? g * rest + mean.at[k] * mu : mean.at[k];
    }
    store<kWidth>(buffer + i, mean);
    store<kWidth>(update + i, grad);
  }
};

template <class T, WeightForm form>
struct AddUpdate {
  Weights<form> weights;
  float step_size, keep;
  const T* update;

  template <class W>
  __device__ void operator()(int64_t i, W) const {
    constexpr int kWidth = W::count;
    const auto step = load<kWidth>(update + i);
    auto weight = weights.template read<kWidth>(i);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) weight.at[k] = weight.at[k] * keep - step.at[k] * step_size;
    weights.template write<kWidth>(i, weight);
  }
};

}  // namespace

void muon_momentum(int64_t n, double momentum, bool nesterov, const float* grad_scale, const float* grads,
                   float* buffer, Dtype dtype, void* update, Stream stream) {
  if (n == 0) return;
  const bool packs = packs_fit<float>(n, grads, buffer, static_cast<float*>(update));
  with_type(dtype, [&]<class T>(T*) {
    const MomentumUpdate<T> body{
        static_cast<float>(momentum), static_cast<float>(1 - momentum), nesterov, grad_scale, grads, buffer,
        static_cast<T*>(update)};
    launch_over_elements<float>(n, packs, body, native(stream));
  });
  check_launch("muon_momentum");
}

void add_update(int64_t n, double step_size, double decay, OptimizedWeights optimized, Dtype dtype,
                const void* update, Stream stream) {
  if (n == 0) return;
  const bool packs = packs_fit<float>(n, static_cast<const float*>(update)) && weight_packs_fit(optimized);
  with_type(dtype, [&]<class T>(T*) {
    with_weight_form<Weights>(optimized, [&]<WeightForm form>(const Weights<form>& weights) {
      const AddUpdate<T, form> body{weights, static_cast<float>(step_size), static_cast<float>(1 - decay),
                                    static_cast<const T*>(update)};
      launch_over_elements<float>(n, packs, body, native(stream));
    });
  });
  check_launch("add_update");
}

}  // namespace tycho::cuda
