// Holds eight consecutive states of the generator, and advances all of them by eight steps at once.
#if defined(__x86_64__)
#include <immintrin.h>

#include <array>
#include <bit>
#include <cstdint>

#include "trainer/data/order/numpy_rng.h"

#define TYCHO_AVX2_INLINE __attribute__((target("avx2,popcnt"), always_inline)) inline
#define TYCHO_AVX2_LAMBDA __attribute__((target("avx2,popcnt"), always_inline))

namespace tycho {
namespace {

using u128 = unsigned __int128;
constexpr uint32_t kLow = UINT32_MAX;

/// Four states, in order.
struct Lanes {
  __m256i low, high;
};

/// Computes s -> mult s + plus, in the halves that 32-bit products take. The swapped members serve the two
/// products that only reach the upper half of 64 bits.
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
  // Lower half: a product of 64 by 64 bits to 128.
  const __m256i low1 = _mm256_srli_epi64(s.low, 32);
  const __m256i t = _mm256_add_epi64(_mm256_mul_epu32(s.low, step.low0), step.plus0);
  const __m256i u = _mm256_add_epi64(_mm256_mul_epu32(low1, step.low0), _mm256_srli_epi64(t, 32));
  const __m256i v = _mm256_add_epi64(_mm256_add_epi64(_mm256_mul_epu32(s.low, step.low1), step.plus1),
                                     _mm256_and_si256(u, all(kLow)));
  const __m256i carried =
      _mm256_add_epi64(_mm256_add_epi64(_mm256_mul_epu32(low1, step.low1), _mm256_srli_epi64(u, 32)),
                       _mm256_srli_epi64(v, 32));
  // Upper half: two more products, of which 64 bits matter.
  const __m256i cross = _mm256_add_epi32(_mm256_mullo_epi32(s.high, step.low_swapped),
                                         _mm256_mullo_epi32(s.low, step.high_swapped));
  const __m256i upper = _mm256_andnot_si256(all(kLow), _mm256_add_epi64(cross, _mm256_slli_epi64(cross, 32)));
  const __m256i straight =
      _mm256_add_epi64(_mm256_mul_epu32(s.high, step.low0), _mm256_mul_epu32(s.low, step.high0));
  s.high = _mm256_add_epi64(_mm256_add_epi64(straight, upper), _mm256_add_epi64(carried, step.plus_high));
  s.low = _mm256_blend_epi32(t, _mm256_slli_epi64(v, 32), 0xAA);
}

/// Returns the outputs of four states as eight words of 32 bits.
TYCHO_AVX2_INLINE __m256i words_of(const Lanes& s) {
  const __m256i x = _mm256_xor_si256(s.low, s.high), turn = _mm256_srli_epi64(s.high, 58);
  return _mm256_or_si256(_mm256_srlv_epi64(x, turn), _mm256_sllv_epi64(x, _mm256_sub_epi64(all(64), turn)));
}

/// For each choice of eight words, the positions of the chosen words, a byte each.
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

/// Writes the chosen ones of eight words, in order, and garbage after them.
TYCHO_AVX2_INLINE void write_taken(__m256i words, uint32_t taken, uint32_t* out) {
  const __m128i places = _mm_cvtsi64_si128(static_cast<int64_t>(kTaken[taken]));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                      _mm256_permutevar8x32_epi32(words, _mm256_cvtepu8_epi32(places)));
}

/// Returns a bit for each of sixteen words, set if the element is all ones.
TYCHO_AVX2_INLINE uint32_t bits_of(__m256i a, __m256i b) {
  const auto low = static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(a)));
  return low | static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(b))) << 8;
}

/// Computes `steps` steps at once: s -> mult s + sum increment.
struct Power {
  u128 mult = 1, sum = 0;
  constexpr Power(u128 one, int steps) {
    for (int i = 0; i < steps; ++i) {
      mult *= one;
      sum = sum * one + 1;
    }
  }
};

/// Eight states, starting with the next one.
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

/// Returns NumPy's double of each state, in [0, 1): 53 bits of its word, as two halves that are exact.
TYCHO_AVX2_INLINE __m256d doubles_of(const Lanes& s) {
  const __m256i bits = _mm256_srli_epi64(words_of(s), 11);
  const __m256i high =
      _mm256_or_si256(_mm256_srli_epi64(bits, 32), all(0x4530000000000000));    // 2^84 + 2^32 x
  const __m256i low = _mm256_blend_epi32(bits, all(0x4330000000000000), 0xAA);  // 2^52 + x
  const __m256d both = _mm256_add_pd(
      _mm256_sub_pd(_mm256_castsi256_pd(high), _mm256_set1_pd(0x1p84 + 0x1p52)), _mm256_castsi256_pd(low));
  return _mm256_mul_pd(both, _mm256_set1_pd(0x1p-53));
}

TYCHO_AVX2_INLINE u128 last_of(const Lanes& s) {
  const auto low = static_cast<uint64_t>(_mm256_extract_epi64(s.low, 3));
  return static_cast<u128>(static_cast<uint64_t>(_mm256_extract_epi64(s.high, 3))) << 64 | low;
}

}  // namespace

__attribute__((target("avx2,popcnt"))) void NumpyRng::next_eights(std::span<double> numbers) {
  constexpr Power kEight(kMultiplier, 8);
  const Step step = step_of(kEight.mult, kEight.sum * increment_);
  auto [a, b] = eight_after(state_, kMultiplier, increment_);
  Lanes newest = b;
  for (size_t at = 0; at < numbers.size(); at += 8) {
    double* const out = numbers.data() + at;
    _mm256_storeu_pd(out, doubles_of(a));
    _mm256_storeu_pd(out + 4, doubles_of(b));
    newest = b;
    advance(a, step);
    advance(b, step);
  }
  state_ = last_of(newest);
}

__attribute__((target("avx2,popcnt"))) void SwapDraws::load_lanes() {
  NumpyRng::u128 state = rng_.state_;
  for (size_t i = 0; i < 8; ++i) {
    state = state * NumpyRng::kMultiplier + rng_.increment_;
    lanes_[i] = static_cast<uint64_t>(state);
    lanes_[8 + i] = static_cast<uint64_t>(state >> 64);
  }
  loaded_ = true;
}

template <bool kKeep>
TYCHO_AVX2_INLINE uint32_t SwapDraws::draw_many(uint32_t last, uint32_t* others) {
  constexpr Power kEight(NumpyRng::kMultiplier, 8);
  const Step step = step_of(kEight.mult, kEight.sum * rng_.increment_);
  if (!loaded_) load_lanes();
  Lanes a = lanes_at(lanes_.data(), lanes_.data() + 8), b = lanes_at(lanes_.data() + 4, lanes_.data() + 12);
  Lanes newest = b;
  const uint32_t first = item_;
  uint32_t i = first, mask = UINT32_MAX >> std::countl_zero(i);
  do {
    __m256i words_a = words_of(a), words_b = words_of(b);
    newest = b;
    advance(a, step);
    advance(b, step);
    alignas(32) std::array<uint32_t, kWords> words;
    const auto store_words = [&]() TYCHO_AVX2_LAMBDA {
      _mm256_store_si256(reinterpret_cast<__m256i*>(words.data()), words_a);
      _mm256_store_si256(reinterpret_cast<__m256i*>(words.data() + 8), words_b);
    };
    if (i < (mask >> 1) + kWords) [[unlikely]] {  // a narrower mask may begin among these
      store_words();
      for (const uint32_t word : words) {
        mask = UINT32_MAX >> std::countl_zero(i);
        if (kKeep) others[first - i] = word & mask;
        i -= (word & mask) <= i;
      }
      mask = UINT32_MAX >> std::countl_zero(i);
      continue;
    }
    const __m256i masks = _mm256_set1_epi32(static_cast<int>(mask));
    words_a = _mm256_and_si256(words_a, masks);
    words_b = _mm256_and_si256(words_b, masks);
    // At the turn of the word at position p, i is at least i - p: a word above i is rejected, a word up to i
    // - p is taken. The few between are checked one by one.
    const __m256i most = _mm256_set1_epi32(static_cast<int>(i));
    const uint32_t beyond = bits_of(_mm256_cmpgt_epi32(words_a, most), _mm256_cmpgt_epi32(words_b, most));
    const uint32_t unsure =
        beyond ^
        bits_of(
            _mm256_cmpgt_epi32(words_a, _mm256_sub_epi32(most, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))),
            _mm256_cmpgt_epi32(words_b,
                               _mm256_sub_epi32(most, _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15))));
    uint32_t taken = beyond ^ 0xFFFF;
    if (unsure != 0) [[unlikely]] {
      store_words();
      for (uint32_t left = unsure; left != 0; left &= left - 1) {
        const uint32_t bit = left & -left;
        const auto before = static_cast<uint32_t>(std::popcount(taken & (bit - 1)));
        if (words[static_cast<size_t>(std::countr_zero(left))] > i - before) taken ^= bit;
      }
    }
    if (kKeep) {
      uint32_t* const out = others + (first - i);
      write_taken(words_a, taken & 0xFF, out);
      write_taken(words_b, taken >> 8, out + std::popcount(taken & 0xFF));
    }
    i -= static_cast<uint32_t>(std::popcount(taken));
  } while (i > last);
  rng_.state_ = last_of(newest);
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes_.data()), a.low);
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes_.data() + 4), b.low);
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes_.data() + 8), a.high);
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes_.data() + 12), b.high);
  item_ = i;
  return first - i;
}

__attribute__((target("avx2,popcnt"))) uint32_t SwapDraws::draw_sixteens(uint32_t last, uint32_t* others) {
  return draw_many<true>(last, others);
}

__attribute__((target("avx2,popcnt"))) void SwapDraws::skip_sixteens(uint32_t last) {
  draw_many<false>(last, nullptr);
}

}  // namespace tycho
#endif
