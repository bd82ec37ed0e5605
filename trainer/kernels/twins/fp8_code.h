// Rounding to fp8: the same codes on every instruction set and GPU. Words and floats are numbers, or vectors
// of equal width.
#pragma once
#include <cstdint>
#include <cstring>

#include "trainer/kernels/twins/kernel_table.h"
#include "trainer/kernels/twins/philox_words.h"

namespace tycho {

/// static: each instruction set keeps its own copy.
#define TYCHO_FP8 TYCHO_ANYWHERE static inline __attribute__((always_inline))

inline constexpr uint32_t kFp32Magnitude = 0x7fffffffu;

TYCHO_FP8 float largest_code(Fp8Format format) { return format == Fp8Format::kE4m3 ? 448.0f : 57344.0f; }

/// Returns the scale of numbers whose largest magnitude is amax: torchao's, with its least amax of 1e-12. NaN
/// gives NaN.
TYCHO_FP8 float fp8_scale(Fp8Rule rule, float amax) {
  const float most = rule.format == Fp8Format::kE4m3 ? 4.48e14f : 5.7344e16f;  // that of an amax of 1e-12
  const float scale = amax < 1e-12f ? most : largest_code(rule.format) / amax;
  if (!rule.power_of_two) return scale;
  uint32_t bits;
  memcpy(&bits, &scale, sizeof bits);
  if ((bits & kFp32Magnitude) < 0x7f800000u) bits &= 0xff800000u;
  float floored;
  memcpy(&floored, &bits, sizeof bits);
  return floored;
}

/// Returns codes of numbers, in the low byte: rounded to nearest even, limited to the largest code; NaN is
/// 0x7f.
template <Fp8Format format, class Word, class Float>
TYCHO_FP8 Word fp8_code(Float x) {
  constexpr uint32_t kFraction = format == Fp8Format::kE4m3 ? 3 : 2,
                     kBias = format == Fp8Format::kE4m3 ? 7 : 15;
  constexpr uint32_t kShift = 23 - kFraction, kLeastNormal = (128 - kBias) << 23;
  constexpr uint32_t kLargest = format == Fp8Format::kE4m3 ? 0x43e00000u : 0x47600000u;
  // Adding it leaves a subnormal's code in the low bits.
  constexpr uint32_t kUnit = (128 - kBias + 23 - kFraction) << 23;
  Word bits;
  memcpy(&bits, &x, sizeof bits);
  const Word sign = bits & ~kFp32Magnitude;
  const Word magnitude = bits ^ sign;
  const Word limited = magnitude > kLargest ? magnitude * 0 + kLargest : magnitude;
  const Word normal = limited - ((127 - kBias) << 23) + ((1u << (kShift - 1)) - 1) + (limited >> kShift & 1u);
  const Word unit_bits = limited * 0 + kUnit;
  Float small, unit;
  memcpy(&small, &limited, sizeof small);
  memcpy(&unit, &unit_bits, sizeof unit);
  small += unit;
  Word subnormal;
  memcpy(&subnormal, &small, sizeof subnormal);
  const Word code = (limited < kLeastNormal ? subnormal - kUnit : normal >> kShift) | sign >> 24;
  return magnitude > 0x7f800000u ? magnitude * 0 + 0x7fu : code;
}

}  // namespace tycho
