// A stack of sums, each waiting for the other half of its subtree.
#include "trainer/sharding/tree_sum.h"

#include "trainer/sharding/gathered_unit.h"

namespace tycho {

TreeSum::TreeSum(SumTree tree, const Tensor& like) : tree_(tree) {
  for (int64_t i = 0; like.defined() && i < tree.most_held(); ++i)
    memory_.push_back(flat_buffer(like.numel(), like.scalar_type(), like.device()).view(like.sizes()));
}

void TreeSum::restart() {
  num_held_ = 0;
  next_leaf_ = 0;
}

void TreeSum::add(Tensor& x) {
  for (int64_t i = tree_.num_joins(next_leaf_); i > 0; --i) x.add_(memory_[--num_held_]);
  if (++next_leaf_ == tree_.leaves) return restart();
  memory_[num_held_++].copy_(x);
}

}  // namespace tycho
