// Philox 4x32-10 (base/random/philox.h) for as many counters at once as there are lanes.
#pragma once
#include "trainer/kernels/cpu/simd.h"

namespace tycho::TYCHO_ISA {

using Wide = uint64_t __attribute__((vector_size(kLanes * 4)));

// Multiplies the lower halves of 64-bit lanes, for which compilers do not find the single instruction.
#if defined(__AVX512F__)
TYCHO_SIMD Wide multiply_low_halves(Wide a, Wide b) {
  return (Wide)_mm512_maskz_mul_epu32(0xff, (__m512i)a, (__m512i)b);
}
#elif defined(__AVX2__)
TYCHO_SIMD Wide multiply_low_halves(Wide a, Wide b) { return (Wide)_mm256_mul_epu32((__m256i)a, (__m256i)b); }
#else
TYCHO_SIMD Wide multiply_low_halves(Wide a, Wide b) { return (a & 0xffffffffu) * (b & 0xffffffffu); }
#endif

struct WideProduct {
  Bits high, low;
};

TYCHO_SIMD WideProduct multiply(Bits x, uint32_t factor) {
  const Wide by = Wide{} + factor, upper = Wide{} + 0xffffffff00000000u;
  const Wide even = multiply_low_halves((Wide)x, by), odd = multiply_low_halves((Wide)x >> 32, by);
  return {(Bits)(even >> 32 | (odd & upper)), (Bits)((even & ~upper) | odd << 32)};
}

struct PhiloxWords {
  Bits at[4];
};

/// Returns the words of counter (low + j, high) in lane j.
TYCHO_SIMD PhiloxWords philox_lanes(uint64_t key, uint64_t low, uint64_t high) {
  Bits c0, c1;
  for (int lane = 0; lane < kLanes; ++lane) {
    c0[lane] = static_cast<uint32_t>(low + lane);
    c1[lane] = static_cast<uint32_t>((low + lane) >> 32);
  }
  Bits c2 = Bits{} + static_cast<uint32_t>(high), c3 = Bits{} + static_cast<uint32_t>(high >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const WideProduct first = multiply(c0, 0xD2511F53), second = multiply(c2, 0xCD9E8D57);
    c0 = second.high ^ c1 ^ k0;
    c1 = second.low;
    c2 = first.high ^ c3 ^ k1;
    c3 = first.low;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

}  // namespace tycho::TYCHO_ISA
