// Adds up the numbers of a step's micro-batches in the order of a tree (layout/sum_tree.h).
#pragma once
#include <vector>

#include "trainer/kernels/tensor.h"
#include "trainer/layout/sum_tree.h"

namespace tycho {

/// Used by one thread.
class TreeSum {
 public:
  /// For tensors like this one, with the memory for the sums that wait; undefined: there is nothing to add.
  TreeSum(SumTree tree, const Tensor& like);
  /// Forgets what was added so far.
  void restart();
  /// Of each leaf in its turn; x of the last one becomes the sum of all.
  void add(Tensor& x);

 private:
  SumTree tree_;
  std::vector<Tensor> memory_;  // of held sums, the oldest first
  size_t num_held_ = 0;
  int64_t next_leaf_ = 0;
};

}  // namespace tycho
