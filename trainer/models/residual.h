// Adds a branch of a block to the residual stream: through its last matrix, with optional dropout.
#pragma once
#include "trainer/kernels/kernel_table.h"
#include "trainer/kernels/tensor.h"
#include "trainer/models/activations.h"
#include "trainer/models/linear.h"

namespace tycho {

/// Where dropout happens; its bits differ from place to place.
enum class DropoutSite : uint64_t { kEmbedding, kAttention, kFeedForward, kScores };

/// y = residual + dropout(linear(x)).
void add_to_stream(LinearParams p, const Tensor& x_NK, const Tensor& residual_ND, BlockActivations act,
                   DropoutSite site, Tensor& y_ND);
/// The gradient of what linear gave, from that of y: dy itself without dropout, else in slot kAdded.
const Tensor& added_gradient(const Tensor& dy_ND, BlockActivations act, DropoutSite site);

/// The mask of a place. Keys of places, blocks, micro-batches and steps differ.
DropoutMask dropout_mask(const DropoutSource& source, DropoutSite site);

}  // namespace tycho
