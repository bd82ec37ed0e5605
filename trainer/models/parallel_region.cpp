// Sums and gathers between ranks along tp.
#include "trainer/models/parallel_region.h"

#include <ATen/ops/empty.h>

#include <vector>

namespace tycho {

TpShape ParallelRegion::shape() const {
  if (!is_shared()) return {};
  return {ranks_->size(), ranks_->rank(), sequence_};
}

ParallelRegion ParallelRegion::of_whole_sequences() const {
  ParallelRegion whole = *this;
  whole.sequence_ = false;
  whole.context_ = {};
  return whole;
}

int64_t ParallelRegion::first_token(int64_t own_tokens) const {
  return cuts_tokens() ? ranks_->rank() * own_tokens : 0;
}

void ParallelRegion::for_token_runs(int64_t own_tokens,
                                    const std::function<void(int64_t i, int64_t j, int64_t n)>& run) const {
  const int64_t first = first_token(own_tokens);
  for_cp_runs(context_.seq(), context_.shape(), first, own_tokens,
              [&](int64_t i, int64_t j, int64_t n) { run(i - first, j, n); });
}

const Tensor& ParallelRegion::enter(const Tensor& x_SD, Tensor& workspace_ND) const {
  if (!cuts_tokens()) return x_SD;
  ranks_->all_gather(workspace_ND, x_SD);
  return workspace_ND;
}

Tensor& ParallelRegion::share(Tensor& result_SD, Tensor& workspace_ND) const {
  return cuts_tokens() ? workspace_ND : result_SD;
}

void ParallelRegion::leave(Tensor& share_ND, Tensor& result_SD) const {
  if (!is_shared()) return;
  if (sequence_)
    ranks_->reduce_scatter(result_SD, share_ND);
  else
    ranks_->all_reduce(result_SD);
}

Tensor ParallelRegion::gathered(const Tensor& x) const {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.insert(sizes.begin(), ranks_->size());
  Tensor all = at::empty(sizes, x.options());
  ranks_->all_gather(all, x);
  return all;
}

}  // namespace tycho
