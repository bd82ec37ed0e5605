// SeedSequence (O'Neill's seed_seq alternative) and PCG64 as NumPy configures them.
#include "trainer/data/order/numpy_rng.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_set>

namespace tycho {
namespace {

constexpr uint32_t kInitA = 0x43b0d7e5, kMultA = 0x931e8875, kInitB = 0x8b51f9dd, kMultB = 0x58f38ded;
constexpr uint32_t kMixLeft = 0xca01f9dd, kMixRight = 0x4973f715;
constexpr int kPool = 4;

/// Hashes words with a multiplier that changes at every call.
class WordHash {
 public:
  WordHash(uint32_t init, uint32_t mult) : constant_(init), mult_(mult) {}
  uint32_t operator()(uint32_t word) {
    word ^= constant_;
    constant_ *= mult_;
    word *= constant_;
    return word ^ word >> 16;
  }

 private:
  uint32_t constant_, mult_;
};

uint32_t mix(uint32_t x, uint32_t y) {
  const uint32_t mixed = kMixLeft * x - kMixRight * y;
  return mixed ^ mixed >> 16;
}

/// Returns SeedSequence(seed).generate_state(4, uint64).
std::array<uint64_t, 4> expand_seed(uint64_t seed) {
  const std::array<uint32_t, kPool> entropy = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                                               0, 0};
  WordHash hash(kInitA, kMultA);
  std::array<uint32_t, kPool> pool;
  for (int i = 0; i < kPool; ++i) pool[i] = hash(entropy[i]);
  for (int from = 0; from < kPool; ++from)
    for (int to = 0; to < kPool; ++to)
      if (from != to) pool[to] = mix(pool[to], hash(pool[from]));
  WordHash out(kInitB, kMultB);
  std::array<uint64_t, 4> state;
  for (int i = 0; i < 4; ++i) {
    const uint64_t low = out(pool[2 * i % kPool]);
    state[i] = static_cast<uint64_t>(out(pool[(2 * i + 1) % kPool])) << 32 | low;
  }
  return state;
}

}  // namespace

NumpyRng::NumpyRng(uint64_t seed) {
  const auto words = expand_seed(seed);
  increment_ = (static_cast<u128>(words[2]) << 64 | words[3]) << 1 | 1;
  state_ = 0;
  next64();
  state_ += static_cast<u128>(words[0]) << 64 | words[1];
  next64();
}

void NumpyRng::next_doubles(std::span<double> numbers) {
  const size_t eights = has_avx2() ? numbers.size() / 8 * 8 : 0;
#if defined(__x86_64__)
  if (eights > 0) next_eights(numbers.first(eights));
#endif
  for (double& number : numbers.subspan(eights)) number = next_double();
}

uint64_t NumpyRng::interval(uint64_t max) {
  if (max == 0) return 0;
  const uint64_t mask = ~uint64_t{0} >> std::countl_zero(max);
  uint64_t value;
  do value = (max <= UINT32_MAX ? next32() : next64()) & mask;
  while (value > max);
  return value;
}

uint64_t NumpyRng::bounded(uint64_t max) {
  if (max == 0) return 0;
  if (max == UINT32_MAX) return next32();
  if (max < UINT32_MAX) {
    const auto count = static_cast<uint32_t>(max + 1);
    uint64_t product = uint64_t{next32()} * count;
    if (static_cast<uint32_t>(product) < count) {
      const uint32_t threshold = (UINT32_MAX - static_cast<uint32_t>(max)) % count;
      while (static_cast<uint32_t>(product) < threshold) product = uint64_t{next32()} * count;
    }
    return product >> 32;
  }
  if (max == UINT64_MAX) return next64();
  const uint64_t count = max + 1;
  u128 product = static_cast<u128>(next64()) * count;
  if (static_cast<uint64_t>(product) < count) {
    const uint64_t threshold = (UINT64_MAX - max) % count;
    while (static_cast<uint64_t>(product) < threshold) product = static_cast<u128>(next64()) * count;
  }
  return static_cast<uint64_t>(product >> 64);
}

std::vector<int64_t> NumpyRng::choice(int64_t population, int64_t count) {
  // choice() shuffles with Lemire's method, unlike Generator.shuffle.
  const auto shuffle_from = [this](std::vector<int64_t>& items, int64_t first) {
    for (auto i = static_cast<int64_t>(items.size()) - 1; i >= first; --i)
      std::swap(items[static_cast<size_t>(i)], items[static_cast<size_t>(bounded(static_cast<uint64_t>(i)))]);
  };
  if (population > 10000 && count > population / 50) {
    std::vector<int64_t> all(static_cast<size_t>(population));
    std::iota(all.begin(), all.end(), int64_t{0});
    shuffle_from(all, std::max<int64_t>(population - count, 1));
    return {all.end() - count, all.end()};
  }
  // Floyd's algorithm.
  std::vector<int64_t> picked;
  std::unordered_set<int64_t> known;
  for (int64_t i = population - count; i < population; ++i) {
    const auto drawn = static_cast<int64_t>(bounded(static_cast<uint64_t>(i)));
    picked.push_back(known.insert(drawn).second ? drawn : i);
    if (picked.back() == i) known.insert(i);
  }
  shuffle_from(picked, 1);
  return picked;
}

// A step is s -> a s + c; so are 2, 4, 8, … steps at once (Brown, "Random Number Generation with Arbitrary
// Strides").
void NumpyRng::skip64(uint64_t count) {
  u128 mult = kMultiplier, plus = increment_, all_mult = 1, all_plus = 0;
  for (; count > 0; count >>= 1) {
    if (count & 1) {
      all_mult *= mult;
      all_plus = all_plus * mult + plus;
    }
    plus = (mult + 1) * plus;
    mult *= mult;
  }
  state_ = all_mult * state_ + all_plus;
}

void NumpyRng::skip32(uint64_t count) {
  if (count == 0) return;
  if (has_spare_) --count;
  has_spare_ = false;
  skip64(count / 2);
  if (count % 2 != 0) next32();
}

// The lowest bit in which two states differ tells whether that many steps are missing (Brown, see above).
uint64_t NumpyRng::words_since(const NumpyRng& earlier) const {
  u128 state = earlier.state_, mult = kMultiplier, plus = increment_, steps = 0;
  for (u128 bit = 1; state != state_; bit <<= 1) {
    if (((state ^ state_) & bit) != 0) {
      state = state * mult + plus;
      steps |= bit;
    }
    plus = (mult + 1) * plus;
    mult *= mult;
  }
  return 2 * static_cast<uint64_t>(steps) + (earlier.has_spare_ ? 1 : 0) - (has_spare_ ? 1 : 0);
}

}  // namespace tycho
