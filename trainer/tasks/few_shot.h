// Chooses the examples that are shown before an item, the same as LLM Foundry.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

namespace tycho {

/// Reproduces random.Random(seed) of CPython 3 bit for bit.        (Matsumoto and Nishimura 1998, MT19937)
class PythonRandom {
 public:
  explicit PythonRandom(uint64_t seed);
  /// Same as _randbelow(n): uniform in [0, n), 0 < n < 2^32.
  int64_t below(int64_t n);
  /// Same as sample(range(n), count), count <= n.
  std::vector<int64_t> sample(int64_t n, int64_t count);

 private:
  uint32_t next();
  void twist();

  std::array<uint32_t, 624> state_;
  size_t at_ = 0;
};

/// Returns at most `count` examples from `size` items for the item `index`, which is not among them, in the
/// order of a set in CPython 3.10 and later.
std::vector<int64_t> few_shot_examples(int64_t size, int64_t count, int64_t index, PythonRandom& random);

}  // namespace tycho
