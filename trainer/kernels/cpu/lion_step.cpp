// Lion on the CPU: every element is read and written once.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/parallel.h"
#include "trainer/kernels/cpu/weights.h"

namespace tycho::TYCHO_ISA {
namespace {

/// Returns -1, 0 or 1; NaN stays NaN.
TYCHO_SIMD Vec sign(Vec x) {
  const Vec unit = __builtin_convertvector((Ints)(x < Vec{}) - (Ints)(x > Vec{}), Vec);
  return x == x ? unit : x;
}

}  // namespace

void lion_step(int64_t n, LionScalars s, const float* grad_scale, OptimizedWeights optimized,
               const float* grads, float* m, Stream) {
  const float scale = *grad_scale, keep = static_cast<float>(1 - s.decay), lr = static_cast<float>(s.lr);
  const float beta1 = static_cast<float>(s.beta1), beta2 = static_cast<float>(s.beta2);
  const float rest1 = static_cast<float>(1 - s.beta1), rest2 = static_cast<float>(1 - s.beta2);
  with_weight_form<Weights>(optimized, [&](const auto& weights) {
    for_row_blocks(n, 1, [&](int64_t first, int64_t count) {
      for_lanes(count, [&](int64_t offset, auto lanes) {
        const int64_t i = first + offset;
        const Vec g = load(grads + i, lanes) * scale, mean = load(m + i, lanes);
        const Vec direction = sign(mean * beta1 + g * rest1);
        store(m + i, mean * beta2 + g * rest2, lanes);
        weights.write(i, weights.read(i, lanes) * keep - direction * lr, lanes);
      });
    });
  });
}

}  // namespace tycho::TYCHO_ISA
