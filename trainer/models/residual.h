// Adds a branch of a block to the residual stream: through its last matrix, with optional dropout.
#pragma once
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"
#include "trainer/models/activations.h"
#include "trainer/models/linear.h"
#include "trainer/models/parallel_region.h"

namespace tycho {

// N tokens, S those of this rank, D width.
/// Site of dropout in the model; random bits differ between sites.
enum class DropoutSite : uint64_t { kEmbedding, kAttention, kFeedForward, kScores };

/// y = residual + dropout(linear(x)); the product leaves the region.
void add_to_stream(const ParallelRegion& region, LinearParams p, const Tensor& x_NK,
                   const Tensor& residual_SD, BlockActivations act, DropoutSite site, Tensor& y_SD);
/// Adds without dropout and without slots, for generation. Requires that every rank has all tokens.
void add_to_stream(const ParallelRegion& region, LinearParams p, const Tensor& x_NK,
                   const Tensor& residual_ND, Tensor& y_ND);
/// Returns the gradient of linear's output, given that of y: dy itself without dropout, else in slot kAdded.
/// It enters the region.
const Tensor& added_gradient(const ParallelRegion& region, const Tensor& dy_SD, BlockActivations act,
                             DropoutSite site);

/// Returns the mask of a site, whose rows begin with token `first_row`. Keys of sites, blocks, micro-batches
/// and steps differ.
DropoutMask dropout_mask(const DropoutSource& source, DropoutSite site, int64_t first_row = 0);
/// Applies dropout (kernels/dropout.h) to this rank's tokens: each is dropped as it would be on one rank.
void drop_tokens(const ParallelRegion& region, const DropoutSource& source, DropoutSite site,
                 const Tensor& x_SD, const Tensor& residual_SD, Tensor& y_SD);

}  // namespace tycho
