// CPython's generator, its sample(), and the order of small integers in its sets.
#include "trainer/tasks/few_shot.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace tycho {
namespace {

/// A set of non-negative numbers with the order of CPython's setobject.c.
class PythonSet {
 public:
  PythonSet() : table_(8, kUnused) {}

  bool contains(int64_t number) const {
    return std::find(table_.begin(), table_.end(), number) != table_.end();
  }
  int64_t size() const { return used_; }
  void add(int64_t number) {
    if (contains(number)) return;
    ++used_;
    if (!put(number)) return;
    ++filled_;
    if (filled_ * 5 < (std::ssize(table_) - 1) * 3) return;
    grow(used_ > 50000 ? used_ * 2 : used_ * 4);
  }
  void remove(int64_t number) {
    std::replace(table_.begin(), table_.end(), number, kRemoved);
    --used_;
  }
  std::vector<int64_t> in_order() const {
    std::vector<int64_t> numbers;
    std::copy_if(table_.begin(), table_.end(), std::back_inserter(numbers), [](int64_t n) { return n >= 0; });
    return numbers;
  }

 private:
  static constexpr int64_t kUnused = -1, kRemoved = -2;

  /// Puts a number at the end of its probe sequence, which is an unused slot, or into the slot of a removed
  /// number in the sequence. Returns true when it took an unused one.
  bool put(int64_t number) {
    constexpr size_t kNeighbours = 9, kShift = 5;
    const size_t mask = table_.size() - 1;
    int64_t* removed = nullptr;
    auto perturb = static_cast<size_t>(number);
    for (size_t at = perturb & mask;; at = (at * 5 + 1 + perturb) & mask) {
      const size_t neighbours = at + kNeighbours <= mask ? kNeighbours : 0;
      for (size_t i = at; i <= at + neighbours; ++i) {
        if (table_[i] == kRemoved) removed = &table_[i];
        if (table_[i] != kUnused) continue;
        (removed != nullptr ? *removed : table_[i]) = number;
        return removed == nullptr;
      }
      perturb >>= kShift;
    }
  }
  void grow(int64_t least) {
    const std::vector<int64_t> numbers = in_order();
    table_.assign(std::bit_ceil(std::max<size_t>(8, static_cast<size_t>(least) + 1)), kUnused);
    for (const int64_t number : numbers) put(number);
    filled_ = used_;
  }

  std::vector<int64_t> table_;
  int64_t filled_ = 0, used_ = 0;  // slots taken, including those of removed numbers; numbers
};

}  // namespace

PythonRandom::PythonRandom(uint64_t seed) {
  state_[0] = 19650218u;
  for (uint32_t i = 1; i < state_.size(); ++i)
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  std::vector<uint32_t> key = {static_cast<uint32_t>(seed)};
  if ((seed >> 32) != 0) key.push_back(static_cast<uint32_t>(seed >> 32));
  size_t i = 1, j = 0;
  const auto step = [&](uint32_t factor, uint32_t added) {
    const uint32_t before = state_[i - 1];
    state_[i] = (state_[i] ^ ((before ^ (before >> 30)) * factor)) + added;
    if (++i < state_.size()) return;
    state_[0] = state_.back();
    i = 1;
  };
  for (size_t k = 0; k < state_.size(); ++k) {
    step(1664525u, key[j] + static_cast<uint32_t>(j));
    j = (j + 1) % key.size();
  }
  for (size_t k = 1; k < state_.size(); ++k) step(1566083941u, 0u - static_cast<uint32_t>(i));
  state_[0] = 0x80000000u;
  at_ = state_.size();
}

void PythonRandom::twist() {
  constexpr size_t kMiddle = 397;
  const size_t n = state_.size();
  for (size_t i = 0; i < n; ++i) {
    const uint32_t y = (state_[i] & 0x80000000u) | (state_[(i + 1) % n] & 0x7fffffffu);
    state_[i] = state_[(i + kMiddle) % n] ^ (y >> 1) ^ ((y & 1) != 0 ? 0x9908b0dfu : 0u);
  }
  at_ = 0;
}

uint32_t PythonRandom::next() {
  if (at_ == state_.size()) twist();
  uint32_t y = state_[at_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

int64_t PythonRandom::below(int64_t n) {
  const int bits = std::bit_width(static_cast<uint64_t>(n));
  int64_t drawn = n;
  while (drawn >= n) drawn = static_cast<int64_t>(next() >> (32 - bits));
  return drawn;
}

std::vector<int64_t> PythonRandom::sample(int64_t n, int64_t count) {
  int64_t pool_limit = 21;
  if (count > 5) {
    int64_t power = 1;
    while (power < count * 3) power *= 4;
    pool_limit += power;
  }
  std::vector<int64_t> drawn;
  if (n <= pool_limit) {
    std::vector<int64_t> pool(static_cast<size_t>(n));
    std::iota(pool.begin(), pool.end(), 0);
    for (int64_t left = n; left > n - count; --left) {
      const auto j = static_cast<size_t>(below(left));
      drawn.push_back(pool[j]);
      pool[j] = pool[static_cast<size_t>(left - 1)];
    }
    return drawn;
  }
  while (std::cmp_less(drawn.size(), count)) {
    const int64_t j = below(n);
    if (std::find(drawn.begin(), drawn.end(), j) == drawn.end()) drawn.push_back(j);
  }
  return drawn;
}

std::vector<int64_t> few_shot_examples(int64_t size, int64_t count, int64_t index, PythonRandom& random) {
  PythonSet shown;
  for (const int64_t one : random.sample(size, std::min(size - 1, count))) shown.add(one);
  if (!shown.contains(index)) return shown.in_order();
  shown.remove(index);
  if (shown.size() >= size - 1) return shown.in_order();
  int64_t instead = index;
  while (instead == index || shown.contains(instead)) instead = random.below(size);
  shown.add(instead);
  return shown.in_order();
}

}  // namespace tycho
