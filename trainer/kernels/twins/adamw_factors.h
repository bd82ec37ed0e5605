// Factors of one AdamW step, computed once per step in double.
#pragma once
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

struct AdamWFactors {
  float beta1, one_minus_beta1, beta2, one_minus_beta2, eps;
  float keep;                  // 1 - decay
  float step_size;             // lr / bias_correction1
  float inv_sqrt_correction2;  // 1 / sqrt(bias_correction2)
};

// static: each instruction set's object keeps its own copy.
static inline AdamWFactors adamw_factors(const AdamWScalars& s) {
  return {static_cast<float>(s.beta1),
          static_cast<float>(1 - s.beta1),
          static_cast<float>(s.beta2),
          static_cast<float>(1 - s.beta2),
          static_cast<float>(s.eps),
          static_cast<float>(1 - s.decay),
          static_cast<float>(s.lr / s.bias_correction1),
          static_cast<float>(1 / __builtin_sqrt(s.bias_correction2))};
}

}  // namespace tycho
