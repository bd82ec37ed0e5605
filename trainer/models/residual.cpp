// Fuses dropout with the addition; where nothing but the addition follows it, the matrix product adds.
#include "trainer/models/residual.h"
#include "trainer/layout/decoder_slots.h"

#include <ATen/ops/add.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/scalar_tensor.h>

#include "trainer/base/random/philox.h"
#include "trainer/kernels/bias.h"
#include "trainer/kernels/dropout.h"

namespace tycho {
namespace {

/// Returns the matrix without its bias, which is added to the sum of all ranks' shares.
LinearParams without_bias(LinearParams p) {
  return {p.weight, view(Views(), -1), p.in_out, p.adapters, p.fp8};
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

BranchEnd::BranchEnd(const DecoderSpec& spec, const BlockParams& at, DropoutSite site,
                     const ParallelRegion& region)
    : region_(region),
      site_(site),
      norm_(spec.norm),
      has_norm_(spec.norms_after()),
      scale_(spec.residual.scale),
      weight_(site == DropoutSite::kAttention ? at.norm1_after_weight : at.norm2_after_weight),
      bias_(site == DropoutSite::kAttention ? at.norm1_after_bias : at.norm2_after_bias),
      output_(site == DropoutSite::kAttention ? block_saved::kBranch1 : block_saved::kBranch2) {}

Tensor& BranchEnd::sum_of_shares(LinearParams out, const Tensor& x_NK, Tensor& workspace_ND,
                                 Tensor& sum_SD) const {
  if (!region_.is_shared()) {
    linear(out, x_NK, sum_SD);
    return sum_SD;
  }
  Tensor& share_ND = region_.share(sum_SD, workspace_ND);
  linear(without_bias(out), x_NK, share_ND);
  region_.leave(share_ND, sum_SD);
  if (out.bias_M.defined()) add_bias(out.bias_M, sum_SD, sum_SD);
  return sum_SD;
}

void BranchEnd::recompute(const Views& p, LinearParams out, const Tensor& x_NK, BlockActivations act) const {
  sum_of_shares(out, x_NK, act.scratch[block_scratch::kPartial], act.saved[output_]);
  norm_.forward(norm_params(p), act.saved[output_], stats(act.saved), act.scratch[block_scratch::kAdded]);
}

const Tensor& BranchEnd::added(const Views& p, LinearParams out, const Tensor& x_NK,
                               BlockActivations act) const {
  Tensor& added_SD = act.scratch[block_scratch::kAdded];
  if (has_norm_)
    recompute(p, out, x_NK, act);
  else
    sum_of_shares(out, x_NK, act.scratch[block_scratch::kPartial], added_SD);
  // Apart from the sum: ATen's add with a factor rounds other elements otherwise in bf16.
  if (scale_ != 1) added_SD.mul_(scale_);
  return added_SD;
}

void BranchEnd::forward(const Views& p, LinearParams out, const Tensor& x_NK, const Tensor& residual_SD,
                        BlockActivations act, Tensor& y_SD, const NextNorm* next) const {
  const bool drops = act.dropout.p > 0, only_adds = !drops && scale_ == 1;
  if (only_adds && has_norm_) {
    const Tensor& sum_SD = sum_of_shares(out, x_NK, act.scratch[block_scratch::kPartial], act.saved[output_]);
    const NormTerms none = no_terms();
    norm_.forward(norm_params(p), sum_SD, stats(act.saved), y_SD, {none.before, none.sum, residual_SD});
  } else if (only_adds && !region_.is_shared() && !(next && adds_apart(out, residual_SD))) {
    linear_add(out, x_NK, residual_SD, y_SD);
  } else if (only_adds && !region_.is_shared()) {
    Tensor product_SD = at::empty_like(y_SD);
    linear(out, x_NK, product_SD);
    return next->of_sum(product_SD, residual_SD, y_SD);
  } else {
    const Tensor& added_SD = added(p, out, x_NK, act);
    if (next && !drops) return next->of_sum(added_SD, residual_SD, y_SD);
    if (drops)
      drop_tokens(region_, act.dropout, site_, added_SD, residual_SD, y_SD);
    else
      at::add_out(y_SD, residual_SD, added_SD);
  }
  if (next) next->of(y_SD);
}

const Tensor& BranchEnd::backward(const Views& p, const Tensor& dy_SD, BlockActivations act, Views& g,
                                  bool add) const {
  Tensor& workspace_ND = act.scratch[block_scratch::kAllTokens];
  Tensor& d_added_SD = act.scratch[block_scratch::kAdded];
  const bool changed = act.dropout.p > 0 || scale_ != 1;
  if (act.dropout.p > 0) {
    drop_tokens(region_, act.dropout, site_, dy_SD, Tensor(), d_added_SD);
    if (scale_ != 1) d_added_SD.mul_(scale_);
  } else if (scale_ != 1) {
    at::mul_out(d_added_SD, dy_SD, at::scalar_tensor(scale_));
  }
  if (has_norm_)
    norm_.backward(norm_params(p), act.saved[output_], stats(act.saved), changed ? d_added_SD : dy_SD,
                   d_added_SD, /*add_to_dx=*/false, {view(g, weight_), view(g, bias_)}, add);
  return region_.enter(changed || has_norm_ ? d_added_SD : dy_SD, workspace_ND);
}

void BranchEnd::apply(const Views& p, LinearParams out, const Tensor& x_NK, const Tensor& residual_ND,
                      Tensor& y_ND) const {
  if (!region_.is_shared() && !has_norm_ && scale_ == 1) return linear_add(out, x_NK, residual_ND, y_ND);
  sum_of_shares(out, x_NK, y_ND, y_ND);
  if (has_norm_) y_ND.copy_(norm_.apply(norm_params(p), y_ND));
  if (scale_ != 1) y_ND.mul_(scale_);
  at::add_out(y_ND, residual_ND, y_ND);
}

}  // namespace tycho
