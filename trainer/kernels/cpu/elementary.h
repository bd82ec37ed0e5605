// tanh, sigmoid and the normal distribution on vectors.
#pragma once
#include "trainer/kernels/cpu/simd.h"

namespace tycho::TYCHO_ISA {

TYCHO_SIMD Vec magnitude(Vec x) { return (Vec)((Bits)x & 0x7fffffffu); }
/// Returns `size` with the sign of `sign`. Requires size >= 0.
TYCHO_SIMD Vec with_sign(Vec size, Vec sign) { return (Vec)((Bits)size | ((Bits)sign & 0x80000000u)); }

TYCHO_SIMD Vec sigmoid(Vec x) { return 1.0f / (1.0f + exp(-x)); }

/// tanh within 4 ulp: a polynomial near 0, where 1 - 2 / (e^2x + 1) would lose digits.
TYCHO_SIMD Vec exact_tanh(Vec x) {
  const Vec size = magnitude(x), square = x * x;
  const Vec far = 1.0f - 2.0f / (exp(size + size) + 1.0f);
  Vec p = broadcast(-5.70498872745e-3f);
  p = p * square + 2.06390887954e-2f;
  p = p * square - 5.37397155531e-2f;
  p = p * square + 1.33314422036e-1f;
  p = p * square - 3.33332819422e-1f;
  const Vec near = p * square * x + x;
  return size < 0.625f ? near : with_sign(far, x);
}

struct Normal {
  Vec cdf, density;
};

/// The standard normal distribution; cdf within 2.5e-7, and within 3e-6 of its own size down to x = -9:
/// erfc(t) = e^(-t²) k P(k) with k = 1 / (1 + p t), P fitted to erfc for t in [0, 9.5].
TYCHO_SIMD Normal normal(Vec x) {
  const Vec e = exp(x * x * -0.5f);
  const Vec k = 1.0f / (magnitude(x) * 0.265165043f + 1.0f);
  Vec p = broadcast(3.069114471e-02f);
  p = p * k - 1.432932269e-01f;
  p = p * k + 2.154544243e-01f;
  p = p * k - 1.138897682e-01f;
  p = p * k + 1.363287266e-01f;
  p = p * k + 6.096381829e-02f;
  p = p * k + 1.026075096e-01f;
  p = p * k + 1.053309463e-01f;
  p = p * k + 1.058064299e-01f;
  const Vec tail = e * k * p;  // probability of the side beyond |x|
  return {x < 0.0f ? tail : 1.0f - tail, e * 0.398942280f};
}

}  // namespace tycho::TYCHO_ISA
