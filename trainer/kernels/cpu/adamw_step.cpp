// AdamW on the CPU: every element is read and written once.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/parallel.h"
#include "trainer/kernels/cpu/weights.h"
#include "trainer/kernels/twins/adamw_factors.h"

namespace tycho::TYCHO_ISA {
namespace {

TYCHO_SIMD Vec sqrt(Vec x) {
  for (int lane = 0; lane < kLanes; ++lane) x[lane] = __builtin_sqrtf(x[lane]);
  return x;
}

template <WeightForm form>
void update(int64_t n, const AdamWFactors& f, float grad_scale, const Weights<form>& weights,
            const float* grads, float* m, float* v) {
  for_row_blocks(n, 1, [&](int64_t first, int64_t count) {
    for_lanes(count, [&](int64_t offset, auto lanes) {
      const int64_t i = first + offset;
      const Vec g = load(grads + i, lanes) * grad_scale;
      const Vec mean = load(m + i, lanes) * f.beta1 + g * f.one_minus_beta1;
      const Vec square = load(v + i, lanes) * f.beta2 + g * g * f.one_minus_beta2;
      const Vec step = mean / (sqrt(square) * f.inv_sqrt_correction2 + f.eps);
      store(m + i, mean, lanes);
      store(v + i, square, lanes);
      weights.write(i, weights.read(i, lanes) * f.keep - step * f.step_size, lanes);
    });
  });
}

}  // namespace

void adamw_step(int64_t n, AdamWScalars scalars, const float* grad_scale, OptimizedWeights weights,
                const float* grads, float* m, float* v, Stream) {
  const AdamWFactors factors = adamw_factors(scalars);
  with_weight_form<Weights>(weights,
                            [&](const auto& form) { update(n, factors, *grad_scale, form, grads, m, v); });
}

}  // namespace tycho::TYCHO_ISA
