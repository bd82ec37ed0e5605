// AdamW on the GPU: every element is read and written once, four at a time.
#include "trainer/kernels/adamw_factors.h"
#include "trainer/kernels/cuda/common.cuh"
#include "trainer/kernels/cuda/kernels.h"

namespace tycho::cuda {
namespace {

/// `weights` are the fp32 weights; `rounded`, when mixed, their bf16 copy.
template <int width, bool mixed>
__global__ void update(int64_t n, AdamWFactors f, const float* grad_scale, float* weights,
                       __nv_bfloat16* rounded, const float* grads, float* m, float* v) {
  const float scale = *grad_scale;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x * width;
  for (int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * width; i < n;
       i += stride) {
    const auto grad = load<width>(grads + i);
    auto mean = load<width>(m + i), square = load<width>(v + i), weight = load<width>(weights + i);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float g = grad.at[k] * scale;
      mean.at[k] = mean.at[k] * f.beta1 + g * f.one_minus_beta1;
      square.at[k] = square.at[k] * f.beta2 + g * g * f.one_minus_beta2;
      weight.at[k] = weight.at[k] * f.keep -
                     mean.at[k] / (sqrtf(square.at[k]) * f.inv_sqrt_correction2 + f.eps) * f.step_size;
    }
    store<width>(m + i, mean);
    store<width>(v + i, square);
    store<width>(weights + i, weight);
    if constexpr (mixed) store<width>(rounded + i, weight);
  }
}

template <bool mixed>
void launch(int64_t n, const AdamWFactors& f, const float* grad_scale, float* weights, __nv_bfloat16* rounded,
            const float* grads, float* m, float* v, cudaStream_t stream) {
  constexpr int kThreads = 256;
  constexpr int64_t kMostBlocks = 1 << 16;
  with_width<float>(
      packs_fit<float>(n, weights, grads, m, v) && reinterpret_cast<uintptr_t>(rounded) % 8 == 0,
      [&](auto width) {
        constexpr int kWidth = decltype(width)::count;
        const int64_t wanted = ceil_div(n, kThreads * kWidth),
                      blocks = wanted < kMostBlocks ? wanted : kMostBlocks;
        update<kWidth, mixed>
            <<<blocks, kThreads, 0, stream>>>(n, f, grad_scale, weights, rounded, grads, m, v);
      });
}

}  // namespace

void adamw_step(int64_t n, AdamWScalars scalars, const float* grad_scale, Dtype dtype, void* params,
                float* master, const float* grads, float* m, float* v, Stream stream) {
  if (n == 0) return;
  const AdamWFactors factors = adamw_factors(scalars);
  if (dtype == Dtype::kFp32)
    launch<false>(n, factors, grad_scale, static_cast<float*>(params), nullptr, grads, m, v, native(stream));
  else
    launch<true>(n, factors, grad_scale, master, static_cast<__nv_bfloat16*>(params), grads, m, v,
                 native(stream));
  check_launch("adamw_step");
}

}  // namespace tycho::cuda
