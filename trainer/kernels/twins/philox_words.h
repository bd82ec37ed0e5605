// Philox for kernels: the same random words on every instruction set, GPU and thread count.
#pragma once
#include <cstdint>

#ifdef __CUDACC__
#define TYCHO_ANYWHERE __host__ __device__
#else
#define TYCHO_ANYWHERE
#endif

namespace tycho {

/// Philox 4x32-10 (base/random/philox.h). static: each instruction set's object keeps its own copy.
TYCHO_ANYWHERE static inline void philox_words(uint64_t key, uint64_t counter_low, uint64_t counter_high,
                                               uint32_t words[4]) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  uint32_t c0 = static_cast<uint32_t>(counter_low), c1 = static_cast<uint32_t>(counter_low >> 32);
  uint32_t c2 = static_cast<uint32_t>(counter_high), c3 = static_cast<uint32_t>(counter_high >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * c0, product1 = uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(product1);
    c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(product0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  words[0] = c0, words[1] = c1, words[2] = c2, words[3] = c3;
}

}  // namespace tycho
