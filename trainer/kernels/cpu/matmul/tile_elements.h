// Elements of tiles of products: fp32, or pairs of bf16, which dot instructions take as one element of 32
// bits.
#pragma once
#include "trainer/kernels/cpu/simd.h"

namespace tycho::TYCHO_ISA {

/// Two consecutive bf16 along the depth; the first one in the lower half.
struct Pair {
  uint32_t bits;
};

/// Loads a vector of elements, one per lane.
template <class E>
TYCHO_SIMD Vec lanes_of(const E* x) {
  Vec lanes;
  __builtin_memcpy(&lanes, x, sizeof lanes);
  return lanes;
}

TYCHO_SIMD Vec spread(float x) { return broadcast(x); }
TYCHO_SIMD Vec spread(Pair x) { return (Vec)(Bits{} + x.bits); }

/// Returns sum + a · b in every lane; the first argument only selects the type of element.
TYCHO_SIMD Vec add_product(float, Vec sum, Vec a, Vec b) {
#if defined(__AVX512F__) && !defined(TYCHO_EMULATED)
  // If it may choose the destination, GCC 12 moves some of 24 sums to other registers and to memory.
  asm("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
#else
  return sum + a * b;
#endif
}
#if defined(__AVX512BF16__)
TYCHO_SIMD Vec add_product(Pair, Vec sum, Vec a, Vec b) {
  return (Vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
}
#endif

}  // namespace tycho::TYCHO_ISA
