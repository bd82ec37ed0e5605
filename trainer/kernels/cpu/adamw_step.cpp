// AdamW on the CPU: every element is read and written once.
#include "trainer/kernels/adamw_factors.h"
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/parallel.h"

namespace tycho::TYCHO_ISA {
namespace {

TYCHO_SIMD Vec sqrt(Vec x) {
  for (int lane = 0; lane < kLanes; ++lane) x[lane] = __builtin_sqrtf(x[lane]);
  return x;
}

/// kMixed: `master` holds the weights and `params` their bf16 copy; otherwise `params` holds the weights.
template <bool kMixed>
void update(int64_t n, const AdamWFactors& f, float grad_scale, void* params, float* master,
            const float* grads, float* m, float* v) {
  float* const weights = kMixed ? master : static_cast<float*>(params);
  for_row_blocks(n, 1, [&](int64_t first, int64_t count) {
    for_lanes(count, [&](int64_t offset, auto lanes) {
      const int64_t i = first + offset;
      const Vec g = load(grads + i, lanes) * grad_scale;
      const Vec mean = load(m + i, lanes) * f.beta1 + g * f.one_minus_beta1;
      const Vec square = load(v + i, lanes) * f.beta2 + g * g * f.one_minus_beta2;
      const Vec step = mean / (sqrt(square) * f.inv_sqrt_correction2 + f.eps);
      const Vec weight = load(weights + i, lanes) * f.keep - step * f.step_size;
      store(m + i, mean, lanes);
      store(v + i, square, lanes);
      store(weights + i, weight, lanes);
      if constexpr (kMixed) store(static_cast<Bf16*>(params) + i, weight, lanes);
    });
  });
}

}  // namespace

void adamw_step(int64_t n, AdamWScalars scalars, const float* grad_scale, Dtype dtype, void* params,
                float* master, const float* grads, float* m, float* v, Stream) {
  const auto run = dtype == Dtype::kFp32 ? &update<false> : &update<true>;
  run(n, adamw_factors(scalars), *grad_scale, params, master, grads, m, v);
}

}  // namespace tycho::TYCHO_ISA
