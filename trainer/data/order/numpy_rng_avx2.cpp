// What a shuffle swaps with, sixteen words at a time: eight states of the generator, which step by eight.
#include <immintrin.h>

#include <array>
#include <bit>
#include <cstdint>

#include "trainer/data/order/numpy_rng.h"

#define TYCHO_AVX2_INLINE __attribute__((target("avx2"), always_inline)) inline

namespace tycho {
namespace {

using u128 = unsigned __int128;
constexpr uint32_t kWords = 16, kLow = UINT32_MAX;

/// Four states, in order.
struct Lanes {
  __m256i low, high;
};

/// s -> mult s + plus, in the halves that 32-bit products take. Swapped: for the two products that only
/// reach the upper half of 64 bits.
struct Step {
  __m256i low0, low1, low_swapped, high0, high_swapped, plus0, plus1, plus_high;
};

TYCHO_AVX2_INLINE __m256i all(uint64_t word) { return _mm256_set1_epi64x(static_cast<int64_t>(word)); }

TYCHO_AVX2_INLINE Step step_of(u128 mult, u128 plus) {
  const auto low = static_cast<uint64_t>(mult), high = static_cast<uint64_t>(mult >> 64);
  const auto plus_low = static_cast<uint64_t>(plus);
  return {all(low & kLow),          all(low >> 32),
          all(std::rotl(low, 32)),  all(high & kLow),
          all(std::rotl(high, 32)), all(plus_low & kLow),
          all(plus_low >> 32),      all(static_cast<uint64_t>(plus >> 64))};
}

TYCHO_AVX2_INLINE Lanes lanes_at(const uint64_t* low, const uint64_t* high) {
  return {_mm256_load_si256(reinterpret_cast<const __m256i*>(low)),
          _mm256_load_si256(reinterpret_cast<const __m256i*>(high))};
}

TYCHO_AVX2_INLINE void advance(Lanes& s, const Step& step) {
  // The lower half: a product of 64 by 64 bits to 128.
  const __m256i low1 = _mm256_srli_epi64(s.low, 32);
  const __m256i t = _mm256_add_epi64(_mm256_mul_epu32(s.low, step.low0), step.plus0);
  const __m256i u = _mm256_add_epi64(_mm256_mul_epu32(low1, step.low0), _mm256_srli_epi64(t, 32));
  const __m256i v = _mm256_add_epi64(_mm256_add_epi64(_mm256_mul_epu32(s.low, step.low1), step.plus1),
                                     _mm256_and_si256(u, all(kLow)));
  const __m256i carried =
      _mm256_add_epi64(_mm256_add_epi64(_mm256_mul_epu32(low1, step.low1), _mm256_srli_epi64(u, 32)),
                       _mm256_srli_epi64(v, 32));
  // What reaches the upper half besides: two products of which 64 bits matter.
  const __m256i cross = _mm256_add_epi32(_mm256_mullo_epi32(s.high, step.low_swapped),
                                         _mm256_mullo_epi32(s.low, step.high_swapped));
  const __m256i upper = _mm256_andnot_si256(all(kLow), _mm256_add_epi64(cross, _mm256_slli_epi64(cross, 32)));
  const __m256i straight =
      _mm256_add_epi64(_mm256_mul_epu32(s.high, step.low0), _mm256_mul_epu32(s.low, step.high0));
  s.high = _mm256_add_epi64(_mm256_add_epi64(straight, upper), _mm256_add_epi64(carried, step.plus_high));
  s.low = _mm256_blend_epi32(t, _mm256_slli_epi64(v, 32), 0xAA);
}

/// Eight words of 32 bits.
TYCHO_AVX2_INLINE __m256i words_of(const Lanes& s) {
  const __m256i x = _mm256_xor_si256(s.low, s.high), turn = _mm256_srli_epi64(s.high, 58);
  return _mm256_or_si256(_mm256_srlv_epi64(x, turn), _mm256_sllv_epi64(x, _mm256_sub_epi64(all(64), turn)));
}

/// For each choice of eight words, the places of those that are taken, a byte each.
constexpr std::array<uint64_t, 256> taken_places() {
  std::array<uint64_t, 256> places{};
  for (uint64_t choice = 0; choice < 256; ++choice) {
    int at = 0;
    for (uint64_t word = 0; word < 8; ++word)
      if ((choice >> word & 1) != 0) places[choice] |= word << (8 * at++);
  }
  return places;
}

constexpr std::array<uint64_t, 256> kTaken = taken_places();

/// Writes eight words, those that are not rejected first; returns how many they are.
TYCHO_AVX2_INLINE uint32_t take(__m256i words, __m256i rejected, uint32_t* out) {
  const uint32_t choice = ~static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(rejected))) & 0xFF;
  const __m128i places = _mm_cvtsi64_si128(static_cast<int64_t>(kTaken[choice]));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                      _mm256_permutevar8x32_epi32(words, _mm256_cvtepu8_epi32(places)));
  return static_cast<uint32_t>(std::popcount(choice));
}

/// So many steps: s -> mult s + sum increment.
struct Power {
  u128 mult = 1, sum = 0;
  constexpr Power(u128 one, int steps) {
    for (int i = 0; i < steps; ++i) {
      mult *= one;
      sum = sum * one + 1;
    }
  }
};

/// Eight states from the next one on.
struct Eight {
  Lanes a, b;
};

TYCHO_AVX2_INLINE Eight eight_after(u128 state, u128 mult, u128 increment) {
  alignas(32) std::array<uint64_t, 8> low, high;
  for (size_t i = 0; i < 8; ++i) {
    state = state * mult + increment;
    low[i] = static_cast<uint64_t>(state);
    high[i] = static_cast<uint64_t>(state >> 64);
  }
  return {lanes_at(low.data(), high.data()), lanes_at(low.data() + 4, high.data() + 4)};
}

TYCHO_AVX2_INLINE u128 last_of(const Lanes& s) {
  const auto low = static_cast<uint64_t>(_mm256_extract_epi64(s.low, 3));
  return static_cast<u128>(static_cast<uint64_t>(_mm256_extract_epi64(s.high, 3))) << 64 | low;
}

}  // namespace

__attribute__((target("avx2"))) void NumpyRng::next_eights(std::span<uint64_t> words) {
  constexpr Power kEight(kMultiplier, 8);
  const Step step = step_of(kEight.mult, kEight.sum * increment_);
  auto [a, b] = eight_after(state_, kMultiplier, increment_);
  Lanes newest = b;
  for (size_t at = 0; at < words.size(); at += 8) {
    auto* const out = reinterpret_cast<__m256i*>(words.data() + at);
    _mm256_storeu_si256(out, words_of(a));
    _mm256_storeu_si256(out + 1, words_of(b));
    newest = b;
    advance(a, step);
    advance(b, step);
  }
  if (!words.empty()) state_ = last_of(newest);
}

__attribute__((target("avx2"))) uint32_t NumpyRng::draw_sixteens(uint32_t first, uint32_t last, uint32_t mask,
                                                                 uint32_t* others) {
  constexpr Power kEight(kMultiplier, 8);
  const Step step = step_of(kEight.mult, kEight.sum * increment_);
  auto [a, b] = eight_after(state_, kMultiplier, increment_);
  Lanes newest = b;
  uint32_t i = first;
  const __m256i masks = _mm256_set1_epi32(static_cast<int>(mask));
  do {
    const __m256i words_a = _mm256_and_si256(words_of(a), masks),
                  words_b = _mm256_and_si256(words_of(b), masks);
    newest = b;
    advance(a, step);
    advance(b, step);
    // While these are drawn i becomes at least i - 16, so a word beyond i is rejected and one up to i - 16
    // is taken, wherever it stands. The few between are looked at one by one.
    const __m256i most = _mm256_set1_epi32(static_cast<int>(i));
    const __m256i least = _mm256_set1_epi32(static_cast<int>(i - kWords));
    const __m256i rejected_a = _mm256_cmpgt_epi32(words_a, most),
                  rejected_b = _mm256_cmpgt_epi32(words_b, most);
    const __m256i doubt_a = _mm256_xor_si256(rejected_a, _mm256_cmpgt_epi32(words_a, least));
    const __m256i doubt_b = _mm256_xor_si256(rejected_b, _mm256_cmpgt_epi32(words_b, least));
    const __m256i doubt = _mm256_or_si256(doubt_a, doubt_b);
    uint32_t* const out = others + (first - i);
    if (_mm256_testz_si256(doubt, doubt) != 0) [[likely]] {
      const uint32_t num_a = take(words_a, rejected_a, out);
      i -= num_a + take(words_b, rejected_b, out + num_a);
    } else {
      alignas(32) std::array<uint32_t, kWords> words;
      _mm256_store_si256(reinterpret_cast<__m256i*>(words.data()), words_a);
      _mm256_store_si256(reinterpret_cast<__m256i*>(words.data() + 8), words_b);
      for (const uint32_t word : words) {
        others[first - i] = word;
        i -= word <= i;
      }
    }
  } while (i > last + kWords);
  state_ = last_of(newest);
  return first - i;
}

}  // namespace tycho
