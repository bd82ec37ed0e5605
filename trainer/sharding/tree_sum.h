// Adds the numbers of a step's micro-batches in the order of a tree (layout/sum_tree.h).
#pragma once
#include <vector>

#include "trainer/kernels/tensor.h"
#include "trainer/layout/sum_tree.h"

namespace tycho {

/// Used by one thread.
class TreeSum {
 public:
  /// Allocates memory for the pending sums of tensors like `like`; if it is undefined, there is nothing to
  /// add.
  TreeSum(SumTree tree, const Tensor& like);
  /// Forgets all sums so far.
  void restart();
  /// Adds the x of the next leaf. The last leaf's x becomes the sum of all.
  void add(Tensor& x);

 private:
  SumTree tree_;
  std::vector<Tensor> memory_;  // pending sums, the oldest first
  size_t num_held_ = 0;
  int64_t next_leaf_ = 0;
};

}  // namespace tycho
