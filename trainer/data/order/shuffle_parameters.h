// Parameters of the shuffle of an epoch.
#pragma once
#include <cstdint>

#include "trainer/recipe/data.h"

namespace tycho {

/// Parameters of the shuffle of an epoch's ids.
struct Shuffle {
  ShuffleAlgo algo = ShuffleAlgo::kNaive;
  int64_t num_canonical_nodes = 1;
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t block_size = 0;  // for py1br and py1e
  /// Number of ids between two marks. They are drawn in less than half a millisecond.
  int64_t between_marks = 1 << 19;
  /// With kNaive: shuffle as PyTorch's DistributedSampler does, not as mosaicml-streaming's naive.
  bool as_torch = false;
};

}  // namespace tycho
