// numpy.random.default_rng, bit for bit: sample orders must be those that mosaicml-streaming's users know.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "trainer/data/order/swap_draws.h"

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
  /// Returns the low half of a 64-bit draw, then its high half.
  uint32_t next32() {
    has_spare_ = !has_spare_;
    if (!has_spare_) return spare_;
    const uint64_t word = next64();
    spare_ = static_cast<uint32_t>(word >> 32);
    return static_cast<uint32_t>(word);
  }
  /// Draws a number uniform in [0, 1).
  double next_double() { return unit_interval(next64()); }

  /// Fills `numbers` by next_double().
  void next_doubles(std::span<double> numbers);

  /// Draws a number uniform in [0, max] as Generator.shuffle does: masked words until one fits.
  uint64_t interval(uint64_t max);
  /// Draws a number uniform in [0, max] as Generator.integers and choice do: Lemire's method.
  uint64_t bounded(uint64_t max);
  /// Generator.integers(low, high). Requires low < high.
  int64_t integers(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bounded(static_cast<uint64_t>(high - 1 - low)));
  }
  /// Generator.choice(population, count, replace=False). Requires count <= population.
  std::vector<int64_t> choice(int64_t population, int64_t count);

  /// Generator.shuffle; applied to 0, 1, 2, … it gives Generator.permutation. Requires fewer than 2^32 items.
  template <class T>
  void shuffle(std::span<T> items) {
    T* const data = items.data();
    const bool cached = items.size_bytes() < kInCache;
    SwapDraws draws(*this, items.size());
    uint32_t i = draws.item();
    for (auto others = draws.next(); !others.empty();) {
      const auto later = draws.next();
      // Prefetches the memory that will be swapped one run later.
      const size_t both = cached ? 0 : std::min(others.size(), later.size());
      for (size_t at = 0; at < both; ++at) {
        __builtin_prefetch(data + later[at], 1);
        std::swap(data[i--], data[others[at]]);
      }
      for (const uint32_t other : others.subspan(both)) std::swap(data[i--], data[other]);
      others = later;
    }
  }
  /// Advances the generator as shuffle() of `num_items` items does.
  void skip_shuffle(size_t num_items) { SwapDraws(*this, num_items).skip(); }
  /// Advances as `count` calls of next64() do, in constant time.
  void skip64(uint64_t count);
  /// Advances as `count` calls of next32() do, in constant time.
  void skip32(uint64_t count);
  /// Returns the number of next32() calls since `earlier`, a copy of this generator: fewer than 2^64.
  uint64_t words_since(const NumpyRng& earlier) const;
  /// True if both generators draw the same numbers from here on.
  bool operator==(const NumpyRng& other) const {
    return state_ == other.state_ && increment_ == other.increment_ && has_spare_ == other.has_spare_ &&
           (!has_spare_ || spare_ == other.spare_);
  }

 private:
  friend class SwapDraws;
  using u128 = unsigned __int128;
  static constexpr size_t kInCache = 256 << 10;
  static constexpr u128 kMultiplier =
      static_cast<u128>(2549297995355413924ull) << 64 | 4865540595714422341ull;

  static double unit_interval(uint64_t word) {
    return static_cast<double>(static_cast<int64_t>(word >> 11)) * (1.0 / 9007199254740992.0);
  }
  static uint64_t output(u128 state) {
    const auto high = static_cast<uint64_t>(state >> 64), low = static_cast<uint64_t>(state);
    return std::rotr(high ^ low, static_cast<int>(high >> 58));
  }

  static bool has_avx2() {
#if defined(__x86_64__)
    static const bool has = __builtin_cpu_supports("avx2");
    return has;
#else
    return false;
#endif
  }
  /// Fills `numbers` by next_double(). Requires AVX2 and a size that is a multiple of 8.
  void next_eights(std::span<double> numbers);

  u128 state_, increment_;
  uint32_t spare_ = 0;  // high half that next32() returns next
  bool has_spare_ = false;
};

}  // namespace tycho
