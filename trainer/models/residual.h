// The end of a block's branch: its last matrix, and how its output is added to the residual stream.
#pragma once
#include "trainer/families/decoder_spec.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"
#include "trainer/layout/decoder_layout.h"
#include "trainer/models/activations.h"
#include "trainer/models/linear.h"
#include "trainer/models/norm.h"
#include "trainer/models/parallel_region.h"
#include "trainer/sharding/gathered_unit.h"

namespace tycho {

// N tokens, S those of this rank, D width, K inputs of the last matrix.
/// Site of dropout in the model; random bits differ between sites.
enum class DropoutSite : uint64_t { kEmbedding, kAttention, kFeedForward, kScores };

/// y = residual + dropout(scale norm(linear(x))), each where the family has it; the product leaves the
/// region. One for the branch of attention and one for that of the feed-forward.
class BranchEnd {
 public:
  /// site: kAttention or kFeedForward.
  BranchEnd(const DecoderSpec& spec, const BlockParams& at, DropoutSite site, const ParallelRegion& region);
  /// Computes y_SD, which may not be x or the residual. next: the norm of y, if it has one, which is computed
  /// along with the addition where that is a pass of its own.
  void forward(const Views& p, LinearParams out, const Tensor& x_NK, const Tensor& residual_SD,
               BlockActivations act, Tensor& y_SD, const NextNorm* next) const;
  /// Fills the slots as forward does where a norm follows, and leaves the norm's output in slot kAdded.
  void recompute(const Views& p, LinearParams out, const Tensor& x_NK, BlockActivations act) const;
  /// True if recompute has something to do.
  bool keeps_output() const { return has_norm_; }
  /// Returns the gradient of linear's output, given that of y: dy itself, or in slot kAdded. It enters the
  /// region. The gradients of the norm's parameters are written to g, or added.
  const Tensor& backward(const Views& p, const Tensor& dy_SD, BlockActivations act, Views& g, bool add) const;
  /// Computes y for generation: without dropout and slots. Requires that every rank has all tokens.
  void apply(const Views& p, LinearParams out, const Tensor& x_NK, const Tensor& residual_ND,
             Tensor& y_ND) const;

 private:
  /// Returns what is added to the residual, before dropout.
  const Tensor& added(const Views& p, LinearParams out, const Tensor& x_NK, BlockActivations act) const;
  NormParams norm_params(const Views& p) const { return {p[static_cast<size_t>(weight_)], view(p, bias_)}; }
  NormStats stats(Views& saved) const { return {saved[output_ + 1], saved[output_ + 2]}; }
  /// Returns the output of the matrix, of all ranks, in `sum_SD`.
  Tensor& sum_of_shares(LinearParams out, const Tensor& x_NK, Tensor& workspace_ND, Tensor& sum_SD) const;

  ParallelRegion region_;
  DropoutSite site_;
  Norm norm_;
  bool has_norm_;
  double scale_;
  int weight_, bias_;  // views of the norm
  size_t output_;      // slot of the matrix's output; the norm's mean and inv follow it
};

/// Returns the mask of a site, whose rows begin with token `first_row`. Keys of sites, blocks, micro-batches
/// and steps differ.
DropoutMask dropout_mask(const DropoutSource& source, DropoutSite site, int64_t first_row = 0);
/// Applies dropout (kernels/dropout.h) to this rank's tokens: each is dropped as it would be on one rank.
void drop_tokens(const ParallelRegion& region, const DropoutSource& source, DropoutSite site,
                 const Tensor& x_SD, const Tensor& residual_SD, Tensor& y_SD);

}  // namespace tycho
