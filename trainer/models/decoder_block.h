// The block of every family: attention and feed-forward, each a branch that is added to the residual stream,
// with norms before it, after it or both.
#pragma once
#include "trainer/families/decoder_spec.h"
#include "trainer/families/recompute_config.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/decoder_layout.h"
#include "trainer/layout/model_layout.h"
#include "trainer/models/activations.h"
#include "trainer/models/feed_forward.h"
#include "trainer/models/kv_cache.h"
#include "trainer/models/norm.h"
#include "trainer/models/parallel_region.h"
#include "trainer/models/self_attention.h"
#include "trainer/sharding/gathered_unit.h"

namespace tycho {

// N tokens, S those of this rank, D width.
/// Block `block` of a model, counted from 0. Written for one device; where several share it, attention and
/// the feed-forward are regions that the stream enters and leaves, and `spec` is that of this rank (tp_spec).
/// No state.
class DecoderBlock {
 public:
  /// shape.seq is the longest sequence that the block will see, of whole sequences.
  DecoderBlock(const DecoderSpec& spec, int64_t block, BatchShape shape, const AttentionTables& tables,
               const at::Device& device, const ParallelRegion& region);
  /// Computes y_SD from x_SD. Keeps in `act` everything that backward needs except x.
  void forward(const Views& params, const Tensor& x_SD, BlockActivations act, Tensor& y_SD) const;
  /// Fills the slots that a block of this mode did not keep, so that backward can use them.
  void recompute(Recompute mode, const Views& params, const Tensor& x_SD, BlockActivations act) const;
  /// d_SD is the gradient of y on entry and of x on return. Parameter gradients are written to `grads`, or
  /// added when `add`.
  void backward(const Views& params, const Tensor& x_SD, BlockActivations act, Views& grads, bool add,
                Tensor& d_SD) const;
  /// For generation: x_ND are the tokens of the cache's pass; their keys and values are added to the cache.
  /// x_of_kv_ND: input from which these are projected, if it is another block's. Returns y_ND.
  Tensor forward_cached(const Views& params, const Tensor& x_ND, const Tensor& x_of_kv_ND,
                        KvCache& cache) const;

 private:
  NormParams norm1(const Views& p) const { return {view(p, at_.norm1_weight), view(p, at_.norm1_bias)}; }
  NormParams norm2(const Views& p) const { return {view(p, at_.norm2_weight), view(p, at_.norm2_bias)}; }

  /// Returns the input of attention: x, normed where the family norms it. Also norms the input of keys and
  /// values where that is another block's.
  /// casts: along with what fp8 needs of it.
  BranchInput attention_input(const Views& params, const Tensor& x_SD, BlockActivations act,
                              bool casts) const;
  /// Returns the input of the feed-forward: the stream after attention, normed where the family norms it.
  BranchInput feed_forward_input(const Views& params, BlockActivations act, bool casts) const;
  /// Fills slot kMiddle from the input of attention, and returns the input of the feed-forward.
  BranchInput attend(const Views& params, const BranchInput& input, const Tensor& x_SD,
                     BlockActivations act) const;
  /// Adds to d_SD, the gradient of the stream, what comes from a branch's input.
  void norm_backward(NormParams p, const Tensor& x_SD, NormStats stats, int weight, int bias,
                     const Tensor& d_input_SD, Views& g, bool add, Tensor& d_SD) const;

  BlockParams at_;
  bool reuses_x_;         // uses the input of an earlier block
  bool last_to_reuse_x_;  // last block that uses that input: the first one in backward
  bool x_reused_;         // its input is used by later blocks
  bool norms_before_;     // what enters a branch
  Norm norm_;
  SelfAttention attention_;
  FeedForward feed_forward_;
};

/// Returns all blocks of a model, which share their tables (attention_tables).
std::vector<DecoderBlock> decoder_blocks(const DecoderSpec& spec, BatchShape shape, int64_t longest,
                                         const at::Device& device, const ParallelRegion& region = {});

}  // namespace tycho
