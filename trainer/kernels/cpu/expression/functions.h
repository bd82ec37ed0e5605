// Functions of expressions on vectors, over the whole range of fp32: within a few ulp, infinities, NaN and
// subnormal numbers as in the C library. Compiled without contraction.
#pragma once
#include "trainer/kernels/cpu/elementary.h"
#include "trainer/kernels/cpu/simd.h"

namespace tycho::TYCHO_ISA {

TYCHO_SIMD Vec choose(Ints mask, Vec yes, Vec no) { return mask ? yes : no; }

TYCHO_SIMD Vec square_root(Vec x) {
  for (int lane = 0; lane < kLanes; ++lane) x[lane] = __builtin_sqrtf(x[lane]);
  return x;
}

TYCHO_SIMD Vec fused_multiply_add(Vec a, Vec b, Vec c) {
  for (int lane = 0; lane < kLanes; ++lane) a[lane] = __builtin_fmaf(a[lane], b[lane], c[lane]);
  return a;
}

TYCHO_SIMD Vec round_down(Vec x) {
  for (int lane = 0; lane < kLanes; ++lane) x[lane] = __builtin_floorf(x[lane]);
  return x;
}

// Returns the second of two equal zeros, and NaN from either side.
TYCHO_SIMD Vec smaller_of(Vec x, Vec y) { return choose((x < y) | (x != x), x, y); }
TYCHO_SIMD Vec larger_of(Vec x, Vec y) { return choose((x > y) | (x != x), x, y); }

TYCHO_SIMD Vec sign_of(Vec x) {
  const Vec unit = __builtin_convertvector((Ints)(x < Vec{}) - (Ints)(x > Vec{}), Vec);
  return x == x ? unit : x;
}

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

/// x = n ln 2 + r with |r| <= ln 2 / 2, ln 2 in two parts.
struct Reduced {
  Vec n, r;
  Ints exponent;  // n

  TYCHO_SIMD_MEMBER explicit Reduced(Vec x) {
    constexpr float kRound = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
    const Vec shifted = x * 1.44269504f + kRound;
    n = shifted - kRound;
    r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    exponent = (Ints)shifted - 0x4b400000;
  }
  /// Returns e^r - 1.
  TYCHO_SIMD_MEMBER Vec power_minus_1() const {
    Vec p = broadcast(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    return p * (r * r) + r;
  }
};

/// e^x like simd.h's exp, for results below 2^-126 and near the largest, too.
TYCHO_SIMD Vec wide_exp(Vec x) {
  const Reduced reduced(at_most(broadcast(89.5f), at_least(broadcast(-104.5f), x)));
  return times_power_of_two(reduced.power_minus_1() + 1.0f, reduced.n, reduced.exponent);
}

/// tanh |x| = u / (u + 2) with u = e^2|x| - 1, which keeps its digits near 0.
TYCHO_SIMD Vec hyperbolic_tangent(Vec x) {
  const Vec size = magnitude(x);
  const Reduced reduced(at_most(broadcast(20.0f), size + size));
  const Vec power = (Vec)((reduced.exponent + 127) << 23);
  const Vec u = power * reduced.power_minus_1() + (power - 1.0f);
  return with_sign(u / (u + 2.0f), x);
}

/// x = 2^n m with sqrt(1/2) <= m < sqrt(2); log m = f - f² / 2 + f³ P(f) with f = m - 1.
TYCHO_SIMD Vec logarithm(Vec x) {
  const Ints tiny = x < 0x1p-126f;
  const Vec normal = choose(tiny, x * 0x1p23f, x);
  const Ints offset = (Ints)normal - 0x3f3504f3;  // bits of sqrt(1/2)
  const Ints exponent = offset >> 23;
  const Vec n = __builtin_convertvector(exponent - (tiny & 23), Vec);
  const Vec f = (Vec)((Ints)normal - (exponent << 23)) - 1.0f;
  Vec p = broadcast(0.0674663857f);
  p = p * f - 0.1167565137f;
  p = p * f + 0.1188816279f;
  p = p * f - 0.1240558922f;
  p = p * f + 0.1421955228f;
  p = p * f - 0.1666799635f;
  p = p * f + 0.2000211924f;
  p = p * f - 0.2500000894f;
  p = p * f + 0.3333331346f;
  const Vec square = f * f;
  const Vec rest = f * square * p - n * 2.12194440e-4f - square * 0.5f;
  const Vec result = (f + rest) + n * 0.693359375f;
  const float infinity = __builtin_inff();
  Vec odd = choose(x == 0.0f, broadcast(-infinity), broadcast(__builtin_nanf("")));
  odd = choose((x == infinity) | (x != x), x, odd);
  return choose((x > 0.0f) & (x < infinity), result, odd);
}

/// Returns 0 below -88.72, where 1 + e^-x is infinite.
TYCHO_SIMD Vec logistic(Vec x) { return 1.0f / (1.0f + wide_exp(-x)); }

/// x (1 + P(x²)) below 1, else 1 - e^Q(|x|), by polynomials fitted to erf(x) / x - 1 and log(1 - erf(x)).
TYCHO_SIMD Vec error_function(Vec x) {
  const Vec size = magnitude(x), square = x * x, t = at_most(broadcast(4.1f), size);
  Vec near = broadcast(7.88912294e-5f);
  near = near * square - 8.02084222e-4f;
  near = near * square + 5.18953567e-3f;
  near = near * square - 2.68544443e-2f;
  near = near * square + 1.128360033e-1f;
  near = near * square - 3.761262596e-1f;
  near = near * square + 1.283791661e-1f;
  Vec far = broadcast(-2.14455285e-5f);
  far = far * t + 4.385295033e-4f;
  far = far * t - 4.190853797e-3f;
  far = far * t + 2.517180331e-2f;
  far = far * t - 1.083615422e-1f;
  far = far * t - 6.332724094e-1f;
  far = far * t - 1.129552007f;
  far = far * t + 1.824594801e-4f;
  return choose(size < 1.0f, near * x + x, choose(x == x, with_sign(1.0f - wide_exp(far), x), x));
}

/// The C library's, lane by lane: its bits are the same on every machine.
TYCHO_SIMD Vec power_each(Vec x, Vec y) {
  for (int lane = 0; lane < kLanes; ++lane) x[lane] = __builtin_powf(x[lane], y[lane]);
  return x;
}

}  // namespace tycho::TYCHO_ISA
