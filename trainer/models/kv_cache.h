// Keys and values of the tokens that were seen, for generation.
#pragma once
#include <vector>

#include "trainer/kernels/tensor.h"

namespace tycho {

/// Per layer [B, P, K, d]: B sequences, P positions, K kv heads. Owned by one decoder.
struct KvCache {
  std::vector<Tensor> keys, values;
  int64_t length = 0;  // positions filled; advanced by the decoder after all layers
};

}  // namespace tycho
