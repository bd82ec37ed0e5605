// Adds neighbours, then their sums, until one row is left; in place.
#include "trainer/comm/device_rank_sums.h"

namespace tycho {

Tensor sum_as_tree(const Tensor& rows_RN) {
  const bool narrow = rows_RN.scalar_type() == at::kBFloat16;
  const Tensor wide = narrow ? rows_RN.to(at::kFloat) : rows_RN;
  int64_t run = wide.size(0);
  while (run % 2 == 0) run /= 2;
  // Leaves: runs of an odd length, one row after the other.
  const Tensor runs = wide.view({wide.size(0) / run, run, wide.size(1)});
  Tensor sums = runs.select(1, 0);
  for (int64_t i = 1; i < run; ++i) sums.add_(runs.select(1, i));
  while (sums.size(0) > 1) {
    const Tensor odd = sums.slice(0, 1, sums.size(0), 2);
    sums = sums.slice(0, 0, sums.size(0), 2);
    sums.add_(odd);
  }
  return narrow ? sums[0].to(at::kBFloat16) : sums[0];
}

}  // namespace tycho
