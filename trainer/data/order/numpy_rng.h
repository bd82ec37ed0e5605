// numpy.random.default_rng, bit for bit: sample orders must be those that mosaicml-streaming's users know.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tycho {

/// PCG64 (XSL-RR 128/64) seeded through SeedSequence, with the draws of NumPy's Generator. Copying it copies
/// its position.
class NumpyRng {
 public:
  explicit NumpyRng(uint64_t seed);

  uint64_t next64() {
    state_ = state_ * kMultiplier + increment_;
    return output(state_);
  }
  /// The low half of a 64-bit draw, then its high half.
  uint32_t next32() {
    has_spare_ = !has_spare_;
    if (!has_spare_) return spare_;
    const uint64_t word = next64();
    spare_ = static_cast<uint32_t>(word >> 32);
    return static_cast<uint32_t>(word);
  }
  /// Uniform in [0, 1).
  double next_double() { return unit_interval(next64()); }

  /// next_double() for each.
  void next_doubles(std::span<double> numbers);

  /// Uniform in [0, max], drawn as Generator.shuffle does: masked words until one fits.
  uint64_t interval(uint64_t max);
  /// Uniform in [0, max], drawn as Generator.integers and choice do: Lemire's method.
  uint64_t bounded(uint64_t max);
  /// Generator.integers(low, high), low < high.
  int64_t integers(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bounded(static_cast<uint64_t>(high - 1 - low)));
  }
  /// Generator.choice(population, count, replace=False), count <= population.
  std::vector<int64_t> choice(int64_t population, int64_t count);

  /// Generator.shuffle; of 0, 1, 2, … it gives Generator.permutation. Fewer than 2^32 items.
  template <class T>
  void shuffle(std::span<T> items) {
    T* const data = items.data();
    const bool cached = items.size_bytes() < kInCache;
    draw_swaps(items.size(), [data, cached](uint32_t i, std::span<const uint32_t> others) {
      if (cached) {
        for (const uint32_t other : others) std::swap(data[i--], data[other]);
        return;
      }
      // Memory is asked for what is swapped a little later.
      const size_t ahead = std::min<size_t>(others.size(), 64);
      for (const uint32_t other : others.first(ahead)) __builtin_prefetch(data + other, 1);
      for (size_t at = 0; at < others.size(); ++at) {
        if (at + ahead < others.size()) __builtin_prefetch(data + others[at + ahead], 1);
        std::swap(data[i--], data[others[at]]);
      }
    });
  }
  /// Draws what the shuffle of so many items draws.
  void skip_shuffle(size_t num_items) {
    draw_swaps(num_items, [](uint32_t, std::span<const uint32_t>) {});
  }
  /// Draws next64() so many times, in a time that does not depend on it.
  void skip64(uint64_t count);

 private:
  using u128 = unsigned __int128;
  static constexpr size_t kInCache = 256 << 10, kDrawn = 1024;
  static constexpr uint32_t kMany = 64;
  static constexpr u128 kMultiplier =
      static_cast<u128>(2549297995355413924ull) << 64 | 4865540595714422341ull;

  static double unit_interval(uint64_t word) {
    return static_cast<double>(static_cast<int64_t>(word >> 11)) * (1.0 / 9007199254740992.0);
  }
  static uint64_t output(u128 state) {
    const auto high = static_cast<uint64_t>(state >> 64), low = static_cast<uint64_t>(state);
    return std::rotr(high ^ low, static_cast<int>(high >> 58));
  }

  /// Calls swaps(i, others), until every item but the first has had its turn: items i, i - 1, … swap with
  /// others[0], others[1], …, at most kDrawn of them. A word that does not fit is overwritten by the next
  /// one: a quarter of all words, so that a branch would be mispredicted as often.
  template <class Swaps>
  void draw_swaps(size_t num_items, Swaps swaps) {
    std::array<uint32_t, kDrawn + 1> others;
    auto i = static_cast<uint32_t>(std::max<size_t>(num_items, 1) - 1);
    while (i > 0) {
      const uint32_t mask = UINT32_MAX >> std::countl_zero(i);
      const uint32_t first = i;
      // Where a narrower mask begins, or `others` is full.
      const uint32_t last = std::max(mask >> 1, i - std::min<uint32_t>(i, kDrawn));
      const auto use = [&](uint32_t word) {
        const uint32_t drawn = word & mask;
        others[first - i] = drawn;
        i = i - 1 + (i < drawn);
      };
      if (has_spare_) use(next32());
      if (has_avx2() && i - last > kMany && i <= INT32_MAX)
        i -= draw_sixteens(i, last, mask, others.data() + (first - i));
      while (i > last) use(next32());
      swaps(first, std::span<const uint32_t>(others).first(first - i));
    }
  }

  static bool has_avx2() {
    static const bool has = __builtin_cpu_supports("avx2");
    return has;
  }
  /// Part of draw_swaps: draws for `first` and the items before, and stops when at most 16 are left before
  /// `last`. No spare word, first - last > kMany. Needs AVX2. Returns how many were drawn.
  uint32_t draw_sixteens(uint32_t first, uint32_t last, uint32_t mask, uint32_t* others);
  /// next64() for each of words, whose number 8 divides. Needs AVX2.
  void next_eights(std::span<uint64_t> words);

  u128 state_, increment_;
  uint32_t spare_ = 0;  // high half not yet given out
  bool has_spare_ = false;
};

}  // namespace tycho
