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

/// x = 2^n m with sqrt(1/2) <= m < sqrt(2); log m = f - f² / 2 + f³ P(f) with f = m - 1.
TYCHO_SIMD Vec logarithm(Vec x) {
  const Ints tiny = x < 0x1p-126f;
  const Vec normal = choose(tiny, x * 0x1p23f, x);
  const Ints offset = (Ints)normal - 0x3f3504f3;  // bits of sqrt(1/2)
  const Ints exponent = offset >> 23;
  const Vec n = __builtin_convertvector(exponent - (tiny & 23), Vec);
  const Vec f = (Vec)((Ints)normal - (exponent << 23)) - 1.0f;
  const Vec p = polynomial(f, 0.0674663857f, -0.1167565137f, 0.1188816279f, -0.1240558922f, 0.1421955228f,
                           -0.1666799635f, 0.2000211924f, -0.2500000894f, 0.3333331346f);
  const Vec square = f * f;
  const Vec cubes = fused_multiply_add(f * square, p, n * -2.12194440e-4f);
  const Vec rest = fused_multiply_add(square, -0.5f, cubes);
  const Vec result = fused_multiply_add(n, 0.693359375f, f + rest);
  const float infinity = __builtin_inff();
  Vec odd = choose(x == 0.0f, broadcast(-infinity), broadcast(__builtin_nanf("")));
  odd = choose((x == infinity) | (x != x), x, odd);
  return choose((x > 0.0f) & (x < infinity), result, odd);
}

/// Returns e^-x² with the bits of the operations exp(-(x * x)).
TYCHO_SIMD Vec exp_of_minus_square(Vec x) { return wide_exp(-(x * x)); }

/// Returns erf(x); `bell` is exp_of_minus_square(x). x (1 + P(x²)) below 1, else 1 - e^-x² Q(|x|), by
/// polynomials fitted to erf(x) / x - 1 and to e^x² (1 - erf(x)).
TYCHO_SIMD Vec error_function(Vec x, Vec bell) {
  const Vec size = magnitude(x), square = x * x, t = at_most(broadcast(4.1f), size);
  const Vec near = polynomial(square, -5.631425301e-4f, 4.917552229e-3f, -2.671131119e-2f, 1.128018e-1f,
                              -3.761232495e-1f, 1.283791214e-1f);
  const Vec far = polynomial(t, -3.973599232e-4f, 6.111732684e-3f, -4.156049341e-2f, 1.657465845e-1f,
                             -4.343977273e-1f, 7.952871919e-1f, -1.049662948f, 9.86456573e-1f);
  const Vec inside = fused_multiply_add(near, x, x);
  const Vec outside = with_sign(fused_multiply_add(-bell, far, 1.0f), x);
  return choose(size < 1.0f, inside, choose(x == x, outside, x));
}

/// The C library's, lane by lane: its bits are the same on every machine.
TYCHO_SIMD Vec power_each(Vec x, Vec y) {
  for (int lane = 0; lane < kLanes; ++lane) x[lane] = __builtin_powf(x[lane], y[lane]);
  return x;
}

}  // namespace tycho::TYCHO_ISA
