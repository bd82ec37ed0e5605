// numpy.random.default_rng, bit for bit: sample orders must be those that mosaicml-streaming's users know.
#pragma once
#include <cstdint>
#include <span>
#include <utility>

namespace tycho {

/// PCG64 (XSL-RR 128/64) seeded through SeedSequence, with the draws of NumPy's Generator.
class NumpyRng {
 public:
  explicit NumpyRng(uint64_t seed);

  uint64_t next64();
  /// The low half of a 64-bit draw, then its high half.
  uint32_t next32();

  /// Uniform in [0, max], drawn as Generator.shuffle does: masked words until one fits.
  uint64_t interval(uint64_t max);
  /// Generator.shuffle; of 0, 1, 2, … it gives Generator.permutation.
  template <class T>
  void shuffle(std::span<T> items) {
    for (size_t i = items.size(); i-- > 1;) std::swap(items[i], items[interval(i)]);
  }

 private:
  using u128 = unsigned __int128;
  u128 state_, increment_;
  uint32_t spare_ = 0;  // high half not yet given out
  bool has_spare_ = false;
};

}  // namespace tycho
