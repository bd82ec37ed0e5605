// Low-rank adapters of a linear layer: y += scale B A dropout(x) (Hu et al. 2021, arXiv:2106.09685).
#pragma once
#include "trainer/kernels/tensor.h"
#include "trainer/layout/decoder_layout.h"
#include "trainer/models/activations.h"
#include "trainer/models/context/context_region.h"
#include "trainer/units/gathered_unit.h"

namespace tycho {

// N tokens, K inputs, M outputs of a view, R rank.
/// Those of one matrix of a block, and what they compute with. Default: none.
struct LayerAdapters {
  const BlockParams* at = nullptr;
  int weight = -1;                // the view of the block that has the matrix
  const Views* params = nullptr;  // of the block, then of its adapters
  Views* scratch = nullptr;       // of the blocks; null: memory is taken for each call
  double dropout = 0;
  uint64_t key = 0;            // of the dropout
  ContextRegion context = {};  // whose tokens the rows of inputs are: each is dropped as on one rank

  bool any() const { return at != nullptr && !at->adapters.empty(); }
};
/// For a pass of training or evaluation, and for generation.
LayerAdapters layer_adapters(const BlockParams& at, int weight, const ContextRegion& context,
                             const Views& params, BlockActivations act);
LayerAdapters layer_adapters(const BlockParams& at, int weight, const ContextRegion& context,
                             const Views& params);

/// y += what the adapters give.
void add_adapters(const LayerAdapters& adapters, const Tensor& x_NK, Tensor& y_NM);
/// dx += their part of it.
void add_adapters_input_gradient(const LayerAdapters& adapters, const Tensor& dy_NM, Tensor& dx_NK);
/// Gradients of A and B, written to `grads` (views as params) or added; those that are undefined are not
/// computed. A x and its gradient are computed again, which is cheap, instead of kept.
void adapters_weight_gradient(const LayerAdapters& adapters, const Tensor& x_NK, const Tensor& dy_NM,
                              Views& grads, bool add);

}  // namespace tycho
