// The random bits of stochastic rounding: the same on every instruction set, GPU and thread count.
#pragma once
#include <cstdint>

#include "trainer/kernels/twins/kernel_table.h"
#include "trainer/kernels/twins/philox_words.h"

namespace tycho {

/// Number of elements that one call serves: 16 bits for each of 8, low halves first.
inline constexpr int kNoiseElements = 8;

/// Philox of (key, block, step). static: each instruction set keeps its own copy.
TYCHO_ANYWHERE static inline void rounding_noise(uint64_t key, uint64_t block, uint64_t step,
                                                 uint32_t words[4]) {
  philox_words(key, block, step, words);
}

/// Returns the 16 bits of element e of a block, 0 to 7.
TYCHO_ANYWHERE static inline uint32_t noise_of(const uint32_t words[4], int64_t e) {
  return words[e / 2] >> (e % 2 * 16) & 0xffffu;
}

/// Returns the element of the parameter that is element i of the buffer.
TYCHO_ANYWHERE static inline int64_t whole_element(const ParamRuns& place, int64_t i) {
  const int64_t at = place.first + i;
  if (place.row == 0) return at;
  const int64_t inside = at % place.row;
  int run = 0;
  while (run + 1 < ParamRuns::kMostRuns && place.here[run + 1] <= inside) ++run;
  return at / place.row * place.whole_row + place.there[run] + inside - place.here[run];
}

}  // namespace tycho
