// numpy.random.default_rng, bit for bit: sample orders must be those that mosaicml-streaming's users know.
#pragma once
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
    const auto high = static_cast<uint64_t>(state_ >> 64), low = static_cast<uint64_t>(state_);
    return std::rotr(high ^ low, static_cast<int>(high >> 58));
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
  double next_double() { return static_cast<double>(next64() >> 11) * (1.0 / 9007199254740992.0); }

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
    if (items.size_bytes() < kInCache) {
      draw_shuffle(items.size(), [data](uint32_t i, uint32_t j) { std::swap(data[i], data[j]); });
      return;
    }
    // Swaps wait until memory has what was drawn before them.
    std::array<std::pair<uint32_t, uint32_t>, kAhead> drawn;
    size_t num_drawn = 0;
    const auto swap_drawn = [&] {
      for (size_t k = 0; k < num_drawn; ++k) std::swap(data[drawn[k].first], data[drawn[k].second]);
      num_drawn = 0;
    };
    draw_shuffle(items.size(), [&](uint32_t i, uint32_t j) {
      __builtin_prefetch(data + j, 1);
      drawn[num_drawn++] = {i, j};
      if (num_drawn == kAhead) swap_drawn();
    });
    swap_drawn();
  }
  /// Draws what the shuffle of so many items draws.
  void skip_shuffle(size_t num_items) {
    draw_shuffle(num_items, [](uint32_t, uint32_t) {});
  }
  /// Draws next64() so many times, in a time that does not depend on it.
  void skip64(uint64_t count);

 private:
  using u128 = unsigned __int128;
  static constexpr size_t kInCache = 256 << 10, kAhead = 32;
  static constexpr u128 kMultiplier =
      static_cast<u128>(2549297995355413924ull) << 64 | 4865540595714422341ull;

  /// Calls swap(i, j) for i from the last item to the second. A word that does not fit swaps an item with
  /// itself: a quarter of all words, so that a branch would be mispredicted as often.
  template <class Swap>
  void draw_shuffle(size_t num_items, Swap swap) {
    if (num_items < 2) return;
    NumpyRng rng = *this;  // in registers
    auto i = static_cast<uint32_t>(num_items - 1);
    uint32_t mask = 0;
    const auto use = [&](uint32_t word) {
      const uint32_t drawn = word & mask;
      const bool fits = drawn <= i;
      swap(i, fits ? drawn : i);
      i -= fits;
    };
    while (i > 0) {
      mask = UINT32_MAX >> std::countl_zero(i);
      const uint32_t last = mask >> 1;  // where a narrower mask begins
      if (rng.has_spare_) use(rng.next32());
      while (i > last + 1) {
        const uint64_t words = rng.next64();
        use(static_cast<uint32_t>(words));
        use(static_cast<uint32_t>(words >> 32));
      }
      if (i > last && !rng.has_spare_) use(rng.next32());
    }
    *this = rng;
  }

  u128 state_, increment_;
  uint32_t spare_ = 0;  // high half not yet given out
  bool has_spare_ = false;
};

}  // namespace tycho
