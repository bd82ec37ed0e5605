// A binary counter over runs of leaves.
#include "trainer/layout/sum_tree.h"

#include <bit>

namespace tycho {
namespace {

/// Returns how often n, which is positive, can be halved.
int64_t num_halvings(int64_t n) { return std::countr_zero(static_cast<uint64_t>(n)); }

}  // namespace

int64_t SumTree::num_joins(int64_t number) const {
  const int64_t run = leaves >> num_halvings(leaves), done = number + 1;
  const int64_t within_run = number % run == 0 ? 0 : 1;
  return within_run + (done % run == 0 ? num_halvings(done / run) : 0);
}

int64_t SumTree::most_held() const {
  const int64_t levels = num_halvings(leaves);
  return levels + (leaves >> levels > 1 ? 1 : 0);
}

}  // namespace tycho
