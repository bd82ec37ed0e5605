// Vectors of floats for the CPU kernels, as wide as the instruction set that this file is compiled for.
//
// Every CPU source is compiled once per instruction set, with TYCHO_ISA naming it (kernels.cmake). Everything
// they define or use lives in that namespace or is a compiler builtin: a shared inline function compiled for
// a newer CPU could otherwise be the copy that the linker keeps for all.
#pragma once
#if defined(__x86_64__)
#include <immintrin.h>  // its functions are always inlined
#endif

#include <cstdint>

namespace tycho::TYCHO_ISA {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX2__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

/// Upper half of the bits of an fp32.
struct Bf16 {
  uint16_t bits;
};

using Vec = float __attribute__((vector_size(kLanes * 4)));
using Bits = uint32_t __attribute__((vector_size(kLanes * 4)));
using Ints = int32_t __attribute__((vector_size(kLanes * 4)));
using Half = uint16_t __attribute__((vector_size(kLanes * 2)));

#define TYCHO_SIMD static inline __attribute__((always_inline))
#define TYCHO_SIMD_MEMBER inline __attribute__((always_inline))

// Number of lanes that a load or store touches: all of them, or the rest of a row.
struct Full {
  static constexpr int count = kLanes;
};
struct Part {
  int count;
};
template <int Count>
struct Fixed {
  static constexpr int count = Count;
};

TYCHO_SIMD Vec broadcast(float x) { return x - Vec{}; }

// Operations that the compiler does not find by itself: conversions between 16 and 32 bits, bounds that keep
// NaN, and a b + c rounded once, which has the same bits on every machine.
#if defined(__AVX512F__)
// Uses the forms with a mask of ones: GCC 12 warns about the undefined register that the plain forms start
// from.
inline constexpr __mmask16 kAll = 0xffff;
TYCHO_SIMD Bits to_32_bits(Half x) { return (Bits)_mm512_maskz_cvtepu16_epi32(kAll, (__m256i)x); }
TYCHO_SIMD Half to_16_bits(Bits x) { return (Half)_mm512_maskz_cvtepi32_epi16(kAll, (__m512i)x); }
TYCHO_SIMD Vec at_least(Vec low, Vec x) { return (Vec)_mm512_maskz_max_ps(kAll, (__m512)low, (__m512)x); }
TYCHO_SIMD Vec at_most(Vec high, Vec x) { return (Vec)_mm512_maskz_min_ps(kAll, (__m512)high, (__m512)x); }
TYCHO_SIMD Vec fused_multiply_add(Vec a, Vec b, Vec c) {
  return (Vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
#elif defined(__AVX2__)
TYCHO_SIMD Bits to_32_bits(Half x) { return (Bits)_mm256_cvtepu16_epi32((__m128i)x); }
TYCHO_SIMD Half to_16_bits(Bits x) {
  const __m256i packed = _mm256_packus_epi32((__m256i)x, (__m256i)x);
  return (Half)_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0xd8));
}
TYCHO_SIMD Vec at_least(Vec low, Vec x) { return (Vec)_mm256_max_ps((__m256)low, (__m256)x); }
TYCHO_SIMD Vec at_most(Vec high, Vec x) { return (Vec)_mm256_min_ps((__m256)high, (__m256)x); }
TYCHO_SIMD Vec fused_multiply_add(Vec a, Vec b, Vec c) {
  return (Vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
#else
TYCHO_SIMD Bits to_32_bits(Half x) { return __builtin_convertvector(x, Bits); }
TYCHO_SIMD Half to_16_bits(Bits x) { return __builtin_convertvector(x, Half); }
TYCHO_SIMD Vec at_least(Vec low, Vec x) { return x < low ? low : x; }
TYCHO_SIMD Vec at_most(Vec high, Vec x) { return x > high ? high : x; }
#if defined(__x86_64__)
/// Adds the exact product and c in double, rounds to odd, then to float: only that rounding counts.
TYCHO_SIMD __m128 fused_pair(__m128 a, __m128 b, __m128 c) {
  using Longs = uint64_t __attribute__((vector_size(16)));
  const __m128d product = _mm_cvtps_pd(a) * _mm_cvtps_pd(b), addend = _mm_cvtps_pd(c), sum = product + addend,
                added = sum - product, error = (product - (sum - added)) + (addend - added);  // exact
  const Longs bits = (Longs)sum, step = ~bits & 1u & (Longs)((error < 0.0) | (error > 0.0));
  return _mm_cvtpd_ps((__m128d)(bits + step - 2u * (step & (bits ^ (Longs)error) >> 63)));
}
TYCHO_SIMD Vec fused_multiply_add(Vec a, Vec b, Vec c) {
  const auto upper = [](Vec x) { return _mm_movehl_ps((__m128)x, (__m128)x); };
  return (Vec)_mm_movelh_ps(fused_pair((__m128)a, (__m128)b, (__m128)c),
                            fused_pair(upper(a), upper(b), upper(c)));
}
#else
TYCHO_SIMD Vec fused_multiply_add(Vec a, Vec b, Vec c) {
  for (int lane = 0; lane < kLanes; ++lane) a[lane] = __builtin_fmaf(a[lane], b[lane], c[lane]);
  return a;
}
#endif
#endif

/// Returns a b + c, rounded once, where the other operands are vectors or numbers.
TYCHO_SIMD Vec fused_multiply_add(Vec a, Vec b, float c) { return fused_multiply_add(a, b, broadcast(c)); }
TYCHO_SIMD Vec fused_multiply_add(Vec a, float b, Vec c) { return fused_multiply_add(a, broadcast(b), c); }
TYCHO_SIMD Vec fused_multiply_add(Vec a, float b, float c) {
  return fused_multiply_add(a, broadcast(b), broadcast(c));
}

/// Returns first xⁿ + … + last, each product rounded with its sum.
template <class... Rest>
TYCHO_SIMD Vec polynomial(Vec x, float first, Rest... rest) {
  Vec p = broadcast(first);
  ((p = fused_multiply_add(p, x, static_cast<float>(rest))), ...);
  return p;
}

TYCHO_SIMD Vec widen(Half half) { return (Vec)(to_32_bits(half) << 16); }

/// Rounds to nearest even; NaN stays NaN.
TYCHO_SIMD Half narrow(Vec x) {
  const Bits bits = (Bits)x;
  const Bits rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return to_16_bits((x == x ? rounded : (bits | 0x400000u)) >> 16);
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
/// Loads the first lanes; lanes beyond the count are 0.
template <class Lanes>
TYCHO_SIMD Vec load(const float* p, Lanes lanes) {
  Vec x{};
  __builtin_memcpy(&x, p, lanes.count * sizeof(float));
  return x;
}
template <class Lanes>
TYCHO_SIMD Vec load(const Bf16* p, Lanes lanes) {
  Half half{};
  __builtin_memcpy(&half, p, lanes.count * sizeof(Bf16));
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

/// Sets lanes beyond the count to `fill`.
TYCHO_SIMD Vec fill_rest(Vec x, Full, float) { return x; }
TYCHO_SIMD Vec fill_rest(Vec x, Part part, float fill) {
  for (int lane = part.count; lane < kLanes; ++lane) x[lane] = fill;
  return x;
}

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

/// x = n ln 2 + r with |r| <= ln 2 / 2, ln 2 in two parts.
struct Reduced {
  Vec n, r;
  Ints exponent;  // n

  TYCHO_SIMD_MEMBER explicit Reduced(Vec x) {
    constexpr float kRound = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
    const Vec shifted = fused_multiply_add(x, 1.44269504f, kRound);
    n = shifted - kRound;
    r = fused_multiply_add(n, 2.12194440e-4f, fused_multiply_add(n, -0.693359375f, x));
    exponent = (Ints)shifted - 0x4b400000;
  }
  /// Returns e^r - 1.
  TYCHO_SIMD_MEMBER Vec power_minus_1() const {
    const Vec p = polynomial(r, 1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                             1.6666665459e-1f, 5.0000001201e-1f);
    return fused_multiply_add(p, r * r, r);
  }
};

/// e^x within 2 ulp; 0 below -87.3, infinity above 88.37, NaN stays NaN. 2^n is put into the exponent.
TYCHO_SIMD Vec exp(Vec x) {
  const Reduced reduced(at_most(broadcast(89.0f), at_least(broadcast(-88.0f), x)));
  return (reduced.power_minus_1() + 1.0f) * (Vec)((reduced.exponent + 127) << 23);
}

TYCHO_SIMD constexpr int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
TYCHO_SIMD constexpr int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
TYCHO_SIMD constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace tycho::TYCHO_ISA
