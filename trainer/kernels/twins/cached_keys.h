// Keys and values of earlier tokens, as the kernel of one token's attention takes them.
#pragma once
#include <cstdint>

namespace tycho {

/// The first `count` keys and values of each head in a cache: rows of d elements, one after the other. Steps
/// are the number of elements between two sequences, and between two heads.
struct CachedKeys {
  const float *keys = nullptr, *values = nullptr;
  int64_t sequence_step = 0, head_step = 0, count = 0;
};

}  // namespace tycho
