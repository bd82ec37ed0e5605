// tanh, sigmoid and the normal distribution on vectors. Products are rounded with the sums that they are part
// of, so that the bits of sources without contraction do not depend on the instruction set.
#pragma once
#include "trainer/kernels/cpu/simd.h"

namespace tycho::TYCHO_ISA {

TYCHO_SIMD Vec magnitude(Vec x) { return (Vec)((Bits)x & 0x7fffffffu); }
/// Returns `size` with the sign of `sign`. Requires size >= 0.
TYCHO_SIMD Vec with_sign(Vec size, Vec sign) { return (Vec)((Bits)size | ((Bits)sign & 0x80000000u)); }

// Returns x 2^n, rounded once; n is whole, `exponent` the same number. Requires |n| <= 252 and 0.5 <= |x| <=
// 2, or NaN.
#if defined(__AVX512F__)
TYCHO_SIMD Vec times_power_of_two(Vec x, Vec n, Ints) {
  return (Vec)_mm512_maskz_scalef_ps(kAll, (__m512)x, (__m512)n);
}
#else
/// Multiplies by two factors, so that results below 2^-126 and near the largest are right.
TYCHO_SIMD Vec times_power_of_two(Vec x, Vec, Ints exponent) {
  const Ints half = exponent >> 1;
  const auto power = [](Ints n) { return (Vec)((n + 127) << 23); };
  return x * power(half) * power(exponent - half);
}
#endif

/// e^x like simd.h's exp, for results below 2^-126 and near the largest, too.
TYCHO_SIMD Vec wide_exp(Vec x) {
  const Reduced reduced(at_most(broadcast(89.5f), at_least(broadcast(-104.5f), x)));
  return times_power_of_two(reduced.power_minus_1() + 1.0f, reduced.n, reduced.exponent);
}

/// Returns 1 / (1 + e^-x), which is 0 below -88.72, where e^-x is infinite.
TYCHO_SIMD Vec sigmoid(Vec x) { return 1.0f / (1.0f + wide_exp(-x)); }

/// tanh |x| = u / (u + 2) with u = e^2|x| - 1, which keeps its digits near 0.
TYCHO_SIMD Vec hyperbolic_tangent(Vec x) {
  const Vec size = magnitude(x);
  const Reduced reduced(at_most(broadcast(20.0f), size + size));
  const Vec power = (Vec)((reduced.exponent + 127) << 23);
  const Vec u = fused_multiply_add(power, reduced.power_minus_1(), power - 1.0f);
  return with_sign(u / (u + 2.0f), x);
}

struct Normal {
  Vec cdf, density;
};

/// The standard normal distribution; cdf within 2.5e-7, and within 3e-6 of its own size down to x = -9:
/// erfc(t) = e^(-t²) k P(k) with k = 1 / (1 + p t), P fitted to erfc for t in [0, 9.5].
TYCHO_SIMD Normal normal(Vec x) {
  const Vec e = exp(x * x * -0.5f);
  const Vec k = 1.0f / fused_multiply_add(magnitude(x), 0.265165043f, 1.0f);
  const Vec p =
      polynomial(k, 3.069114471e-02f, -1.432932269e-01f, 2.154544243e-01f, -1.138897682e-01f,
                 1.363287266e-01f, 6.096381829e-02f, 1.026075096e-01f, 1.053309463e-01f, 1.058064299e-01f);
  const Vec tail = e * k * p;  // probability of the side beyond |x|
  return {x < 0.0f ? tail : 1.0f - tail, e * 0.398942280f};
}

}  // namespace tycho::TYCHO_ISA
