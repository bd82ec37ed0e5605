// Keys and values of the tokens that were seen, for generation.
#pragma once
#include <vector>

#include "trainer/kernels/tensor.h"

namespace tycho {

/// Rows of a cache that follow each other and have as many positions filled.
struct CachedRows {
  int64_t first = 0, count = 0, length = 0;
};

/// Per block [B, K, P, d], undefined where it reuses those of another: B sequences, K kv heads, P positions;
/// fp32 on a CPU, where attention computes in it, else the compute dtype. Owned by one decoder.
struct KvCache {
  std::vector<Tensor> keys, values;
  // Whose tokens the pass under way has, in this order, and after how many: as many tokens for each row.
  std::vector<CachedRows> pass;
  Tensor* attention = nullptr;  // gets the attention weights of the block that runs, [B, H, T, S] in fp32
};

}  // namespace tycho
