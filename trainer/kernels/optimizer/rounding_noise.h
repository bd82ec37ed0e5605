// The random bits of stochastic rounding: the same on every instruction set, GPU and thread count.
#pragma once
#include <cstdint>

#include "trainer/kernels/philox_words.h"

namespace tycho {

/// Elements that one call serves: 16 bits for each of 8, low halves first.
inline constexpr int kNoiseElements = 8;

/// Philox of (key, block, step). static: each instruction set keeps its own copy.
TYCHO_ANYWHERE static inline void rounding_noise(uint64_t key, uint64_t block, uint64_t step,
                                                 uint32_t words[4]) {
  philox_words(key, block, step, words);
}

/// The 16 bits of element e: block e / 8.
TYCHO_ANYWHERE static inline uint32_t noise_of(const uint32_t words[4], int64_t e) {
  return words[e % kNoiseElements / 2] >> (e % 2 * 16) & 0xffffu;
}

}  // namespace tycho
