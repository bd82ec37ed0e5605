// Fuses dropout with the addition; without dropout the matrix product adds.
#include "trainer/models/residual.h"

#include <ATen/ops/add.h>

#include "trainer/base/random/philox.h"
#include "trainer/kernels/bias.h"
#include "trainer/kernels/dropout.h"
#include "trainer/layout/decoder_layout.h"

namespace tycho {

namespace {

/// Returns the matrix without its bias, which is added to the sum of all ranks' shares.
LinearParams without_bias(LinearParams p) { return {p.weight, view(Views(), -1), p.in_out, p.adapters}; }

Tensor& sum_of_shares(const ParallelRegion& region, LinearParams p, const Tensor& x_NK, Tensor& workspace_ND,
                      Tensor& sum_SD) {
  Tensor& share_ND = region.share(sum_SD, workspace_ND);
  linear(without_bias(p), x_NK, share_ND);
  region.leave(share_ND, sum_SD);
  if (p.bias_M.defined()) add_bias(p.bias_M, sum_SD, sum_SD);
  return sum_SD;
}

}  // namespace

DropoutMask dropout_mask(const DropoutSource& source, DropoutSite site, int64_t first_row) {
  const auto words = philox(source.key, static_cast<uint64_t>(site));
  return {.p = site == DropoutSite::kScores ? source.attn_p : source.p,
          .key = uint64_t{words[0]} << 32 | words[1],
          .first_row = first_row};
}

void drop_tokens(const ParallelRegion& region, const DropoutSource& source, DropoutSite site,
                 const Tensor& x_SD, const Tensor& residual_SD, Tensor& y_SD) {
  region.for_token_runs(x_SD.size(0), [&](int64_t i, int64_t j, int64_t n) {
    Tensor y = y_SD.narrow(0, i, n);
    dropout(dropout_mask(source, site, j), x_SD.narrow(0, i, n),
            residual_SD.defined() ? residual_SD.narrow(0, i, n) : residual_SD, y);
  });
}

void add_to_stream(const ParallelRegion& region, LinearParams p, const Tensor& x_NK,
                   const Tensor& residual_SD, BlockActivations act, DropoutSite site, Tensor& y_SD) {
  if (act.dropout.p == 0 && !region.is_shared()) return linear_add(p, x_NK, residual_SD, y_SD);
  Tensor& added_SD = act.scratch[block_scratch::kAdded];
  if (region.is_shared())
    sum_of_shares(region, p, x_NK, act.scratch[block_scratch::kPartial], added_SD);
  else
    linear(p, x_NK, added_SD);
  if (act.dropout.p == 0) {
    at::add_out(y_SD, residual_SD, added_SD);
    return;
  }
  drop_tokens(region, act.dropout, site, added_SD, residual_SD, y_SD);
}

void add_to_stream(const ParallelRegion& region, LinearParams p, const Tensor& x_NK,
                   const Tensor& residual_ND, Tensor& y_ND) {
  if (!region.is_shared()) return linear_add(p, x_NK, residual_ND, y_ND);
  sum_of_shares(region, p, x_NK, y_ND, y_ND);
  y_ND.add_(residual_ND);
}

const Tensor& added_gradient(const ParallelRegion& region, const Tensor& dy_SD, BlockActivations act,
                             DropoutSite site) {
  Tensor& workspace_ND = act.scratch[block_scratch::kAllTokens];
  if (act.dropout.p == 0) return region.enter(dy_SD, workspace_ND);
  Tensor& d_added_SD = act.scratch[block_scratch::kAdded];
  drop_tokens(region, act.dropout, site, dy_SD, Tensor(), d_added_SD);
  return region.enter(d_added_SD, workspace_ND);
}

}  // namespace tycho
