// Keys and values of earlier tokens, for generation.
#pragma once
#include <vector>

#include "trainer/kernels/tensor.h"

namespace tycho {

/// Consecutive rows of a cache with equally many filled positions.
struct CachedRows {
  int64_t first = 0, count = 0, length = 0;
};

/// Keys and values, per block [B, K, P, d], undefined where a block reuses those of another: B sequences, K
/// kv heads, P positions; fp32 on a CPU, where attention computes in it, else the compute dtype. Owned by one
/// decoder.
struct KvCache {
  std::vector<Tensor> keys, values;
  // Rows of the current pass, in the order of its tokens, with the number of earlier tokens; equally many
  // tokens for each row.
  std::vector<CachedRows> pass;
  Tensor* attention = nullptr;  // receives the attention weights of the block that runs, [B, H, T, S] in fp32
};

}  // namespace tycho
