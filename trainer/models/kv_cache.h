// Keys and values of the tokens that were seen, for generation.
#pragma once
#include <vector>

#include "trainer/kernels/tensor.h"

namespace tycho {

/// Per block [B, K, P, d], undefined where it reuses those of another: B sequences, K kv heads, P positions;
/// fp32 on a CPU, where attention computes in it, else the compute dtype. Owned by one decoder.
struct KvCache {
  std::vector<Tensor> keys, values;
  int64_t length = 0;  // positions filled; advanced by the decoder after all layers
};

}  // namespace tycho
