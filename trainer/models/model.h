// A decoder-only language model: embedding, blocks, head, as a loop over units that stops at the micro-batch.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "trainer/families/attention_config.h"
#include "trainer/families/config.h"
#include "trainer/families/decoder_spec.h"
#include "trainer/families/recompute_config.h"
#include "trainer/kernels/attention/packed_documents.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/stages.h"
#include "trainer/models/activations.h"
#include "trainer/models/block_units.h"
#include "trainer/models/context/context_region.h"
#include "trainer/models/decoder_block.h"
#include "trainer/models/head.h"
#include "trainer/models/parallel_region.h"
#include "trainer/models/pipeline_stage.h"
#include "trainer/models/token_loss.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {

/// Losses of this rank's tokens of a micro-batch, on the stage with the head. Valid during the call that
/// receives them.
struct TokenLosses {
  Tensor losses_N;              // fp32, cross-entropies of tokens that have a target, times their weights
  Tensor targets_N;             // int32
  Tensor weights_N;             // fp32; undefined: 1 each
  Tensor positions_N;           // int32, in their sequences
  Tensor document_positions_N;  // int32, in their documents; undefined: there are no documents
};

/// Tokens that pass through forward and backward at once. Tokens and targets are int32 [B * T] on the model's
/// device.
struct MicroBatch {
  Tensor tokens_N, targets_N;
  bool first = true;         // its gradients overwrite those of the previous step
  bool last = true;          // gradients are complete after it
  uint64_t dropout_key = 0;  // key of this step and micro-batch
  // int32 [B * T] on the host: attention stays within equal numbers; undefined: the whole row.
  Tensor documents_N = {};
  Tensor weights_N = {};  // fp32 [B * T] on the device: of each token's loss; undefined: 1 each
  std::function<void()> after_forward = {};                   // called between forward and backward
  std::function<void(const TokenLosses&)> after_losses = {};  // called on the stage with the head
};

/// Memory of a micro-batch's activations on a stage, from its forward to its backward.
struct ActivationSlot {
  size_t chunk = 0;
  int64_t set = 0;       // index in the chunk's sets
  int64_t gradient = 0;  // index in the stage's gradients of the stream
};

/// A model for training. Used by one thread; asynchronous on CUDA.
class Model {
 public:
  /// Allocates all memory. `units` must outlive the model. `region`: the ranks along tp and cp; `units` has
  /// this rank's part of the model (tp_units), and all these ranks call the functions below together, with
  /// the same tokens, of whole sequences of `shape`. `stage`: the part of the model that this rank computes;
  /// `units` has only its units (stage_units). `loss`: what training minimises. Collective on the ranks along
  /// pp.
  Model(const ModelConfig& config, UnitStore& units, BatchShape shape, at::ScalarType dtype,
        const at::Device& device, const RecomputeConfig& recompute = {}, const ParallelRegion& region = {},
        const PipelineStage& stage = {}, const TokenLoss& loss = {}, const AttentionConfig& attention = {});

  /// Returns a model with the same units for sequences of `seq` tokens, at most this model's; *this for its
  /// own length. It computes in this model's memory, so only one of all widths may have a pass in progress.
  /// Made at the first request, and kept. Not collective.
  Model& at_width(int64_t seq);

  /// For ranks without pipeline stages. Adds weight_1 (fp32, one element) x the gradient of the summed token
  /// losses to the units' gradients. Goes back no further than the lowest unit that is trained. Returns the
  /// sums over this rank's tokens along cp, fp64 [num_losses()], on the device: of cross-entropies, then of
  /// each term; gradients are also of these tokens.
  Tensor forward_backward(const MicroBatch& micro, const Tensor& weight_1);
  /// Compute one chunk of a stage: from its input to its output, and from the gradient of its output to that
  /// of its input. The first chunk of the model begins with the tokens, and the last one ends with the loss,
  /// which backward returns; others return an undefined tensor.
  void forward(const MicroBatch& micro, const ActivationSlot& place);
  Tensor backward(const MicroBatch& micro, const Tensor& weight_1, const ActivationSlot& place);
  /// Tensors that are passed from stage to stage, [S, D].
  Tensor input(const ActivationSlot& place) { return row(place, 0); }
  Tensor output(const ActivationSlot& place) { return row(place, part_.chunks[place.chunk].size()); }
  Tensor& gradient(const ActivationSlot& place) { return d_streams_[static_cast<size_t>(place.gradient)]; }
  /// True if something before this chunk is trained, so that the gradient of its input is needed;
  /// trains_until includes the chunk's own blocks.
  bool trains_before(size_t chunk) const { return trains(block_unit(part_.chunks[chunk].begin) - 1); }
  bool trains_until(size_t chunk) const { return trains(block_unit(part_.chunks[chunk].end) - 1); }

  /// Returns the losses of this rank's tokens, fp32 [num_losses(), B T / cp] on the device, valid until the
  /// next call; zeros on stages without the head. Dropout is off. Of the batch only tokens, targets,
  /// documents and weights count. Collective on the ranks along pp.
  const Tensor& all_losses(const MicroBatch& batch);
  /// Returns the cross-entropies of all_losses().
  Tensor losses(const Tensor& tokens_N, const Tensor& targets_N, const Tensor& documents_N = {}) {
    return all_losses({.tokens_N = tokens_N, .targets_N = targets_N, .documents_N = documents_N})
        .select(0, 0);
  }
  const TokenLoss& loss() const { return head_.loss; }
  /// Bytes of the activations of every width, which hold nothing between two batches.
  Tensor& activation_memory() { return activations_.arena(); }

  const ModelLayout& layout() const { return layout_; }
  const ContextRegion& context() const { return head_.region.context(); }
  const StagePart& part() const { return part_; }
  /// Returns the residual stream before block i, [S, D]: of all tokens, or with sequence parallel of those
  /// from first_token() on; after the last block for i = num_blocks. It belongs to the newest forward pass.
  /// Only for blocks of this rank's stage, and after the last one on the stage with the head.
  Tensor stream(int64_t i);
  bool has_stream(int64_t i) const {
    return part_.has_block(i) || (i == layout_.num_blocks && part_.is_last());
  }
  int64_t first_token() { return head_.region.first_token(gradient({}).size(0)); }

 private:
  Model(const Model& wide, int64_t seq);
  ActivationSpecs stage_specs() const;
  /// Returns the gradients that blocks lend to activations; none on a GPU.
  std::vector<Tensor> lent() const;
  /// Lays out everything that depends on activations_ and on the length of shape_.
  void lay_out();
  int block_unit(int64_t i) const { return static_cast<int>(i) + 1; }
  int head_unit() const { return static_cast<int>(layout_.num_blocks) + 1; }
  bool trains(int unit) const { return unit >= lowest_trained_; }
  const DecoderBlock& block(int64_t i) const { return blocks_[static_cast<size_t>(i)]; }
  /// State that a forward pass leaves for the backward pass.
  struct Passing {
    PackedDocuments documents;
    uint64_t dropout_key = 0;
    bool training = false;  // a backward pass follows
  };
  Passing& passing(const ActivationSlot& place) {
    return passing_[place.chunk][static_cast<size_t>(place.set)];
  }
  /// Returns row i of the stream of a chunk: before its i-th block.
  Tensor row(const ActivationSlot& place, int64_t i);
  Tensor stream_at(const ActivationSlot& place, int64_t block) {
    return row(place, block - part_.chunks[place.chunk].begin);
  }
  /// Returns the documents of documents_BT, which are whole sequences, with the positions of this rank's
  /// tokens.
  PackedDocuments documents_of(const Tensor& documents_BT) const;
  /// Returns the positions of this rank's tokens in their sequences.
  Tensor sequence_positions(const at::TensorOptions& options) const;
  /// Returns what the loss takes of a micro-batch.
  LossTokens loss_tokens(const MicroBatch& micro, const ActivationSlot& place);
  TokenLosses token_losses(const LossTokens& tokens, const ActivationSlot& place);
  BlockActivations block_activations(int64_t i, const ActivationSlot& place);
  void run_chunk(const Tensor& tokens_N, const ActivationSlot& place);
  void embed(const Tensor& tokens_N, const ActivationSlot& place);
  DropoutSource embedding_dropout(const ActivationSlot& place) {
    return {.p = spec_.embedding.dropout, .key = passing(place).dropout_key};
  }
  void run_forward(int64_t i, const ActivationSlot& place);
  void run_backward(int64_t i, bool add, const ActivationSlot& place);
  Tensor head_loss(const LossTokens& tokens, const Tensor& weight_1, bool add, const ActivationSlot& place);
  void reduce(int unit, bool last);
  void embed_backward(const Tensor& tokens_N, bool add, const ActivationSlot& place);

  ModelConfig config_;
  DecoderSpec spec_;  // spec of this rank
  ModelLayout layout_;
  BatchShape shape_;  // shape of whole sequences
  at::ScalarType dtype_;
  at::Device device_;
  RecomputeConfig recompute_;
  HeadRules head_;
  PipelineStage stage_;
  StagePart part_;
  UnitStore& units_;
  BlockUnits block_units_;
  int lowest_trained_ = 0;  // lower units are frozen, on all stages
  Activations activations_;
  bool borrows_ = false;  // activations are in gradients: a step has one micro-batch
  std::vector<Tensor> d_streams_;
  std::vector<DecoderBlock> blocks_;
  Tensor position_N_;  // int32: positions of this rank's tokens; undefined when it has all
  std::vector<std::vector<Passing>> passing_;           // by chunk and set
  std::vector<int64_t> newest_sets_;                    // by chunk: set of its newest forward pass
  std::map<int64_t, std::unique_ptr<Model>> narrower_;  // by length
};

}  // namespace tycho
