// Many normal numbers at a time, equal to those of base/random/normal_numbers.h in every bit. Logarithm, sine
// and cosine are those of fdlibm on vectors; where their last bits could round to another fp32 than the
// definition's, the definition is evaluated.
#include "trainer/base/random/normal_numbers.h"

#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/philox_lanes.h"

namespace tycho::TYCHO_ISA {
namespace {

constexpr int kWide = kLanes / 2;
using Doubles = double __attribute__((vector_size(kLanes * 4)));
using Floats = float __attribute__((vector_size(kLanes * 2)));

/// Convert whole numbers below 2^52, and signed ones of 32 bits.
TYCHO_SIMD Doubles to_double(Wide x) { return (Doubles)(x | 0x4330000000000000u) - 0x1p52; }
TYCHO_SIMD Doubles signed_to_double(Wide low_32) { return to_double(low_32 ^ 0x80000000u) - 0x1p31; }

#if defined(__AVX512F__)
TYCHO_SIMD Doubles root(Doubles x) { return (Doubles)_mm512_maskz_sqrt_pd(0xff, (__m512d)x); }
#elif defined(__AVX2__)
TYCHO_SIMD Doubles root(Doubles x) { return (Doubles)_mm256_sqrt_pd((__m256d)x); }
#else
TYCHO_SIMD Doubles root(Doubles x) {
  for (int lane = 0; lane < kWide; ++lane) x[lane] = __builtin_sqrt(x[lane]);
  return x;
}
#endif

/// Returns ln x for x in [2^-32, 1], with a relative error of 5e-16: x = 2^k m with m between the roots of
/// 1/2 and 2.
TYCHO_SIMD Doubles log_of(Doubles x) {
  constexpr uint64_t kRootOfHalf = 0x3fe6a09e667f3bcd;
  const Wide k = ((Wide)x - kRootOfHalf + (uint64_t{64} << 52)) >> 52;  // 64 more, so that it is positive
  const Doubles m = (Doubles)((Wide)x - ((k - 64) << 52));
  const Doubles s = (m - 1.0) / (m + 1.0), z = s * s;
  Doubles p = z * 1.479819860511658591e-01 + 1.531383769920937332e-01;
  p = p * z + 1.818357216161805012e-01;
  p = p * z + 2.222219843214978396e-01;
  p = p * z + 2.857142874366239149e-01;
  p = p * z + 3.999999999940941908e-01;
  p = p * z + 6.666666666666735130e-01;
  return (to_double(k) - 64.0) * 0.693147180559945309417 + (s * (p * z) + 2.0 * s);
}

struct Direction {
  Doubles cos, sin;
};

/// Returns sine and cosine of the angle 2 pi w / 2^32, within 4e-16: quarters of a turn, and at most an
/// eighth to either side.
TYCHO_SIMD Direction direction(Wide w) {
  constexpr uint64_t kLow = 0xffffffffu;
  const Wide quarter = ((w + (uint64_t{1} << 29)) & kLow) >> 30;
  const Doubles x = signed_to_double((w - (quarter << 30)) & kLow) * (6.283185307179586477 * 0x1p-32);
  const Doubles z = x * x;
  Doubles s = z * 1.58969099521155010221e-10 - 2.50507602534068634195e-08;
  s = s * z + 2.75573137070700676789e-06;
  s = s * z - 1.98412698298579493134e-04;
  s = s * z + 8.33333333332248946124e-03;
  s = s * z - 1.66666666666666324348e-01;
  s = s * z * x + x;
  Doubles c = z * -1.13596475577881948265e-11 + 2.08757232129817482790e-09;
  c = c * z - 2.75573143513906633035e-07;
  c = c * z + 2.48015872894767294178e-05;
  c = c * z - 1.38888888888741095749e-03;
  c = c * z + 4.16666666666666019037e-02;
  c = c * z * z - 0.5 * z + 1.0;
  const Wide odd = Wide{} - (quarter & 1);
  const Wide cos = ((Wide)c & ~odd) | ((Wide)s & odd), sin = ((Wide)s & ~odd) | ((Wide)c & odd);
  return {(Doubles)(cos ^ (((quarter + 1) & 2) << 62)), (Doubles)(sin ^ ((quarter & 2) << 62))};
}

using FloatBits = int32_t __attribute__((vector_size(kLanes * 2)));

/// Returns radius x direction in fp32. This product and the definition's differ by at most 3e-15 of the
/// radius (both angles are rounded, 1e-15 and 2e-16, and every function errs in its last bits): lanes of
/// `sure` stay set where neither that difference nor the sign of a zero can change the fp32 result.
TYCHO_SIMD Floats round_surely(Doubles radius, Doubles direction, FloatBits& sure) {
  const Doubles x = radius * direction, apart = radius * 0x1p-47;
  const Floats low = __builtin_convertvector(x - apart, Floats),
               high = __builtin_convertvector(x + apart, Floats);
  sure &= (low == high) & (low != 0.0f);
  return low;
}

}  // namespace

void normal_numbers(int64_t groups, uint64_t key, uint64_t first_counter, double std, float* out) {
  int64_t group = 0;
  for (; group + kLanes <= groups; group += kLanes) {
    const uint64_t counter = first_counter + static_cast<uint64_t>(group);
    const PhiloxWords words = philox_lanes(key, counter, 0);
    FloatBits sure = FloatBits{} - 1;
    for (int odd = 0; odd < 2; ++odd) {  // lanes of counters in turn
      Floats values[4];
      for (int pair = 0; pair < 2; ++pair) {
        const Wide low = (Wide)words.at[2 * pair], high = (Wide)words.at[2 * pair + 1];
        const Doubles u = (to_double(odd ? low >> 32 : low & 0xffffffffu) + 1.0) * 0x1p-32;
        const Doubles radius = root(log_of(u) * -2.0) * std;
        const Direction towards = direction(odd ? high >> 32 : high & 0xffffffffu);
        values[2 * pair] = round_surely(radius, towards.cos, sure);
        values[2 * pair + 1] = round_surely(radius, towards.sin, sure);
      }
      for (int lane = 0; lane < kWide; ++lane)
        for (int i = 0; i < 4; ++i) out[4 * (group + 2 * lane + odd) + i] = values[i][lane];
    }
    bool all_sure = true;
    for (int lane = 0; lane < kWide; ++lane) all_sure &= sure[lane] != 0;
    if (!all_sure)  // one vector of some ten thousand
      for (int lane = 0; lane < kLanes; ++lane)
        four_normals(key, counter + static_cast<uint64_t>(lane), std, out + 4 * (group + lane));
  }
  for (; group < groups; ++group)
    four_normals(key, first_counter + static_cast<uint64_t>(group), std, out + 4 * group);
}

}  // namespace tycho::TYCHO_ISA
