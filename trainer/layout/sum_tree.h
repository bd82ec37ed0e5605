// Order in which the numbers of several micro-batches are added, whichever ranks compute them. Torch-free.
#pragma once
#include <cstdint>

namespace tycho {

/// Tree of sums. `leaves` is 2^k times an odd number: that many neighbours are added one after the other, and
/// the 2^k sums as a complete binary tree. So a rank that has one of 1, 2, 4 ... 2^k equal runs of leaves
/// adds up a whole subtree, and the ranks only have to add the tree above.
struct SumTree {
  int64_t leaves = 1;

  /// Returns the number of held sums, the newest first, that are added to leaf `number` (from 0). The result
  /// is then held, or is the sum of all. A rank visits the leaves in order and holds the sums that are not
  /// complete.
  int64_t num_joins(int64_t number) const;
  /// Returns the most sums that are held at once.
  int64_t most_held() const;
};

}  // namespace tycho
