// Magnitudes and codes of vectors, and the casts of a row by the kernel that computes it, on the CPU.
#pragma once
#include <cstdint>

#include "trainer/kernels/cpu/simd.h"
#include "trainer/kernels/twins/fp8_code.h"
#include "trainer/kernels/twins/kernel_table.h"
#include "trainer/kernels/twins/row_extras.h"

namespace tycho::TYCHO_ISA {

using Codes = uint8_t __attribute__((vector_size(kLanes)));

/// Returns magnitudes whose order as integers is theirs as numbers, NaN above all.
TYCHO_SIMD Ints magnitudes(Vec x) { return (Ints)((Bits)x & kFp32Magnitude); }
TYCHO_SIMD Ints larger_of(Ints a, Ints b) { return a > b ? a : b; }
/// Returns the largest lane, as a number.
TYCHO_SIMD float largest_of(Ints magnitudes) {
  int32_t amax_bits = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    amax_bits = magnitudes[lane] > amax_bits ? magnitudes[lane] : amax_bits;
  float amax;
  __builtin_memcpy(&amax, &amax_bits, sizeof amax);
  return amax;
}

TYCHO_SIMD Codes codes_of(Fp8Format format, Vec x, Vec scale) {
  const Vec scaled = x * scale;
  return __builtin_convertvector(format == Fp8Format::kE4m3 ? fp8_code<Fp8Format::kE4m3, Bits>(scaled)
                                                            : fp8_code<Fp8Format::kE5m2, Bits>(scaled),
                                 Codes);
}

/// Makes the casts of a row, whose elements are computed twice. row_at(i, lanes): elements, rounded to bf16.
template <class RowAt>
TYCHO_SIMD void cast_row_at(int64_t dim, int64_t row, const CastRows& casts, const RowAt& row_at) {
  Ints most{};
  for_lanes(dim, [&](int64_t i, auto lanes) {
    most = larger_of(most, magnitudes(fill_rest(row_at(i, lanes), lanes, 0.0f)));
  });
  const float amax = largest_of(most);
  if (casts.amax_R) casts.amax_R[row] = amax;
  if (!casts.codes) return;
  const float scale = fp8_scale({Fp8Format::kE4m3, casts.power_of_two}, amax);
  casts.factors_R[row] = 1.0f / scale;
  for_lanes(dim, [&](int64_t i, auto lanes) {
    const Codes codes = codes_of(Fp8Format::kE4m3, row_at(i, lanes), broadcast(scale));
    __builtin_memcpy(casts.codes + row * dim + i, &codes, lanes.count);
  });
}

/// True if casts are asked for.
inline bool any_casts(const CastRows& casts) { return casts.codes || casts.amax_R; }

}  // namespace tycho::TYCHO_ISA
