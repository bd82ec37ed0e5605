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

/// x (1 + P(x²)) below 1, else 1 - e^Q(|x|), by polynomials fitted to erf(x) / x - 1 and log(1 - erf(x)).
TYCHO_SIMD Vec error_function(Vec x) {
  const Vec size = magnitude(x), square = x * x, t = at_most(broadcast(4.1f), size);
  const Vec near = polynomial(square, 7.88912294e-5f, -8.02084222e-4f, 5.18953567e-3f, -2.68544443e-2f,
                              1.128360033e-1f, -3.761262596e-1f, 1.283791661e-1f);
  const Vec far = polynomial(t, -2.14455285e-5f, 4.385295033e-4f, -4.190853797e-3f, 2.517180331e-2f,
                             -1.083615422e-1f, -6.332724094e-1f, -1.129552007f, 1.824594801e-4f);
  const Vec inside = fused_multiply_add(near, x, x);
  return choose(size < 1.0f, inside, choose(x == x, with_sign(1.0f - wide_exp(far), x), x));
}

/// The C library's, lane by lane: its bits are the same on every machine.
TYCHO_SIMD Vec power_each(Vec x, Vec y) {
  for (int lane = 0; lane < kLanes; ++lane) x[lane] = __builtin_powf(x[lane], y[lane]);
  return x;
}

}  // namespace tycho::TYCHO_ISA
