// Vectors of floats for the CPU kernels, as wide as the instruction set that this file is compiled for.
//
// Every CPU source is compiled once per instruction set, with TYCHO_ISA naming it (kernels.cmake). Everything
// they define or use lives in that namespace or is a compiler builtin: a shared inline function compiled for
// a newer CPU could otherwise be the copy that the linker keeps for all.
#pragma once
#include <cstdint>

namespace tycho::TYCHO_ISA {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX2__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

/// The upper half of an fp32's bits.
struct Bf16 {
  uint16_t bits;
};

using Vec = float __attribute__((vector_size(kLanes * 4)));
using Bits = uint32_t __attribute__((vector_size(kLanes * 4)));
using Ints = int32_t __attribute__((vector_size(kLanes * 4)));
using Half = uint16_t __attribute__((vector_size(kLanes * 2)));

#define TYCHO_SIMD static inline __attribute__((always_inline))

// How many lanes a load or store touches: all of them, or the rest of a row.
struct Full {
  static constexpr int count = kLanes;
};
struct Part {
  int count;
};

TYCHO_SIMD Vec broadcast(float x) { return x - Vec{}; }

TYCHO_SIMD Vec widen(Half half) { return (Vec)(__builtin_convertvector(half, Bits) << 16); }

/// Rounds to nearest even; NaN stays NaN.
TYCHO_SIMD Half narrow(Vec x) {
  const Bits bits = (Bits)x;
  const Bits rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const Bits quiet = (bits >> 16) | 0x40u;
  const Bits is_nan = (Bits)(x != x);
  return __builtin_convertvector((is_nan & quiet) | (~is_nan & rounded), Half);
}

TYCHO_SIMD Vec load(const float* p, Full) {
  Vec x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
TYCHO_SIMD Vec load(const Bf16* p, Full) {
  Half half;
  __builtin_memcpy(&half, p, sizeof half);
  return widen(half);
}
/// Lanes beyond the count are 0.
TYCHO_SIMD Vec load(const float* p, Part part) {
  Vec x{};
  __builtin_memcpy(&x, p, part.count * sizeof(float));
  return x;
}
TYCHO_SIMD Vec load(const Bf16* p, Part part) {
  Half half{};
  __builtin_memcpy(&half, p, part.count * sizeof(Bf16));
  return widen(half);
}
template <class Lanes>
TYCHO_SIMD void store(float* p, Vec x, Lanes lanes) {
  __builtin_memcpy(p, &x, lanes.count * sizeof(float));
}
template <class Lanes>
TYCHO_SIMD void store(Bf16* p, Vec x, Lanes lanes) {
  const Half half = narrow(x);
  __builtin_memcpy(p, &half, lanes.count * sizeof(Bf16));
}

/// Runs body(offset, lanes) over n elements: whole vectors, then the rest.
template <class Body>
TYCHO_SIMD void for_lanes(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, Full{});
  if (i < n) body(i, Part{static_cast<int>(n - i)});
}

/// Lanes beyond the count become `fill`.
TYCHO_SIMD Vec fill_rest(Vec x, Full, float) { return x; }
TYCHO_SIMD Vec fill_rest(Vec x, Part part, float fill) {
  for (int lane = part.count; lane < kLanes; ++lane) x[lane] = fill;
  return x;
}

TYCHO_SIMD Vec max(Vec a, Vec b) { return a > b ? a : b; }

// Sums and maxima across lanes pair neighbours in a fixed order.
TYCHO_SIMD float sum_lanes(Vec x) {
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; ++lane) x[lane] += x[lane + width];
  return x[0];
}
TYCHO_SIMD float max_lanes(Vec x) {
  float most = x[0];
  for (int lane = 1; lane < kLanes; ++lane) most = x[lane] > most ? x[lane] : most;
  return most;
}

/// e^x within 2 ulp; 0 below -87.3, infinity above 88.37, NaN stays NaN.
/// x = n ln 2 + r with |r| <= ln 2 / 2 (ln 2 in two parts), e^r by a polynomial, 2^n put into the exponent.
TYCHO_SIMD Vec exp(Vec x) {
  const Vec low = broadcast(-88.0f), high = broadcast(89.0f);
  x = x < low ? low : x;
  x = x > high ? high : x;
  const float round = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
  const Vec shifted = x * 1.44269504f + round;
  const Vec n = shifted - round;
  const Vec r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  Vec p = broadcast(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const Ints exponent = ((Ints)shifted - 0x4b400000 + 127) << 23;
  return p * (Vec)exponent;
}

TYCHO_SIMD int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
TYCHO_SIMD int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
TYCHO_SIMD int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace tycho::TYCHO_ISA
