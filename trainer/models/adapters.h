// Low-rank adapters of a linear layer: y += scale B A dropout(x) (Hu et al. 2021, arXiv:2106.09685).
#pragma once
#include "trainer/kernels/tensor.h"
#include "trainer/layout/decoder_layout.h"
#include "trainer/models/activations.h"
#include "trainer/models/context/context_region.h"
#include "trainer/sharding/gathered_unit.h"

namespace tycho {

// N tokens, K inputs, M outputs of a view, R rank.
/// Adapters of one matrix of a block, and what they need to compute. Default: none.
struct LayerAdapters {
  const BlockParams* at = nullptr;
  int weight = -1;                // view of the block that has the matrix
  const Views* params = nullptr;  // views of the block, then of its adapters
  Views* scratch = nullptr;       // scratch of the blocks; nullptr: memory is allocated for each call
  double dropout = 0;
  uint64_t key = 0;            // key of the dropout
  ContextRegion context = {};  // tokens of the rows of inputs: each is dropped as on one rank

  bool any() const { return at != nullptr && !at->adapters.empty(); }
};
/// Return the adapters for a pass of training or evaluation, and for generation.
LayerAdapters layer_adapters(const BlockParams& at, int weight, const ContextRegion& context,
                             const Views& params, BlockActivations act);
LayerAdapters layer_adapters(const BlockParams& at, int weight, const ContextRegion& context,
                             const Views& params);

/// y += output of the adapters.
void add_adapters(const LayerAdapters& adapters, const Tensor& x_NK, Tensor& y_NM);
/// dx += gradient of x through the adapters.
void add_adapters_input_gradient(const LayerAdapters& adapters, const Tensor& dy_NM, Tensor& dx_NK);
/// Computes the gradients of A and B, which are written to `grads` (views as params) or added; undefined ones
/// are not computed. A x and its gradient are computed again, which is cheap, instead of kept.
void adapters_weight_gradient(const LayerAdapters& adapters, const Tensor& x_NK, const Tensor& dy_NM,
                              Views& grads, bool add);

}  // namespace tycho
