// SeedSequence (O'Neill's seed_seq alternative) and PCG64 as NumPy configures them.
#include "trainer/data/loader/numpy_rng.h"

#include <array>
#include <bit>

namespace tycho {
namespace {

constexpr uint32_t kInitA = 0x43b0d7e5, kMultA = 0x931e8875, kInitB = 0x8b51f9dd, kMultB = 0x58f38ded;
constexpr uint32_t kMixLeft = 0xca01f9dd, kMixRight = 0x4973f715;
constexpr int kPool = 4;

/// Scrambles words with a multiplier that changes at every call.
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

/// SeedSequence(seed).generate_state(4, uint64).
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

uint64_t NumpyRng::next64() {
  constexpr u128 kMultiplier = static_cast<u128>(2549297995355413924ull) << 64 | 4865540595714422341ull;
  state_ = state_ * kMultiplier + increment_;
  const auto high = static_cast<uint64_t>(state_ >> 64), low = static_cast<uint64_t>(state_);
  return std::rotr(high ^ low, static_cast<int>(high >> 58));
}

uint32_t NumpyRng::next32() {
  has_spare_ = !has_spare_;
  if (!has_spare_) return spare_;
  const uint64_t word = next64();
  spare_ = static_cast<uint32_t>(word >> 32);
  return static_cast<uint32_t>(word);
}

uint64_t NumpyRng::interval(uint64_t max) {
  if (max == 0) return 0;
  const uint64_t mask = ~uint64_t{0} >> std::countl_zero(max);
  uint64_t value;
  do value = (max <= UINT32_MAX ? next32() : next64()) & mask;
  while (value > max);
  return value;
}

}  // namespace tycho
