// A decoder-only language model: embedding, blocks, head, as a loop over units that stops at the micro-batch.
#pragma once
#include <functional>

#include "trainer/families/config.h"
#include "trainer/families/recompute_config.h"
#include "trainer/kernels/attention/packed_documents.h"
#include "trainer/kernels/kernel_table.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/decoder_spec.h"
#include "trainer/layout/model_layout.h"
#include "trainer/models/activations.h"
#include "trainer/models/block_units.h"
#include "trainer/models/context_region.h"
#include "trainer/models/decoder_block.h"
#include "trainer/models/head.h"
#include "trainer/models/kv_cache.h"
#include "trainer/models/parallel_region.h"
#include "trainer/parallel/unit_store.h"

namespace tycho {

/// What passes through forward and backward at once. Tokens and targets are int32 [B * T] on the model's
/// device.
struct MicroBatch {
  Tensor tokens_N, targets_N;
  bool first = true;         // its gradients overwrite those of the step before
  bool last = true;          // gradients are complete after it
  uint64_t dropout_key = 0;  // of this step and micro-batch
  // int32 [B * T] on the host: attention stays within equal ones; undefined: the whole row.
  Tensor documents_N = {};
  std::function<void()> after_forward = {};  // called between forward and backward
};

/// Trains. One thread; asynchronous on CUDA.
class Model {
 public:
  /// `units` outlives the model. All memory is taken here. `region`: the ranks along tp and cp; `units` has
  /// what this one has of the model (tp_units), and all of them call the functions below together, with the
  /// same tokens, of whole sequences of `shape`.
  Model(const ModelConfig& config, UnitStore& units, BatchShape shape, at::ScalarType dtype,
        const at::Device& device, const RecomputeConfig& recompute = {}, const ParallelRegion& region = {});

  /// Adds weight_1 (fp32, one element) x the gradient of the summed token losses into the units' gradients.
  /// Goes back no further than the lowest unit that is trained.
  /// Returns the summed loss of the tokens that ranks along cp leave this one, fp64, one element, on the
  /// device; so are the gradients.
  Tensor forward_backward(const MicroBatch& micro, const Tensor& weight_1);
  /// Losses of those tokens, fp32 [B T / cp] on the device, valid until the next call. Nothing is dropped.
  const Tensor& losses(const Tensor& tokens_N, const Tensor& targets_N, const Tensor& documents_N = {});

  const ModelLayout& layout() const { return layout_; }
  /// The residual stream before block i, [S, D]: of all tokens, or with sequence parallel of those from
  /// first_token() on; after the last block for i = num_blocks. Of the newest forward pass.
  Tensor stream(int64_t i) { return activations_.model(model_slot::kStream).select(0, i); }
  int64_t first_token() { return head_.region.first_token(stream(0).size(0)); }

 private:
  int block_unit(int64_t i) const { return static_cast<int>(i) + 1; }
  int head_unit() const { return static_cast<int>(layout_.num_blocks) + 1; }
  bool trains(int unit) const { return unit >= lowest_trained_; }
  const DecoderBlock& block(int64_t i) const { return blocks_[static_cast<size_t>(i)]; }
  const ContextRegion& context() const { return head_.region.context(); }
  BlockActivations block_activations(int64_t i);
  /// documents_BT of whole sequences.
  void take_documents(const Tensor& documents_BT);
  void embed(const Tensor& tokens_N);
  DropoutSource embedding_dropout() const { return {.p = spec_.embedding_dropout, .key = dropout_key_}; }
  void run_forward(int64_t i);
  void run_backward(int64_t i, bool add);
  Tensor head_loss(const Tensor& targets_N, const Tensor& weight_1, bool add);
  void reduce(int unit, bool last);
  void embed_backward(const Tensor& tokens_N, bool add);

  DecoderSpec spec_;  // of this rank
  ModelLayout layout_;
  BatchShape shape_;  // of whole sequences
  at::Device device_;
  RecomputeConfig recompute_;
  HeadRules head_;
  UnitStore& units_;
  BlockUnits block_units_;
  int lowest_trained_ = 0;  // units before it are frozen
  Activations activations_;
  std::vector<DecoderBlock> blocks_;
  // Of the pass that is under way.
  PackedDocuments documents_;
  Tensor position_N_;  // int32: this rank's tokens; undefined when it has all
  uint64_t dropout_key_ = 0;
  bool dropping_ = false;
};

/// What a pass of a Decoder gives beside the logits after the last token.
struct DecoderLook {
  bool every_position = false;             // logits of all tokens: [B * T, V]
  std::vector<Tensor>* streams = nullptr;  // gets the stream before each block and after the last, [B * T, D]
  // Instead of the logits after the last token: int64 on the device, rows of [B * T]. `chosen` gets the fp32
  // logits of consecutive parts of them, [P, V], and nothing is returned.
  Tensor rows_R = {};
  std::function<void(const Tensor& logits_PV)> chosen = {};
};

/// Generates: forward only, with a cache of keys and values.
class Decoder {
 public:
  /// `region` as in Model.
  Decoder(const ModelConfig& config, UnitStore& units, int64_t batch, int64_t num_positions,
          at::ScalarType dtype, const at::Device& device, const ParallelRegion& region = {});
  /// tokens_N: int32 [B * T], the tokens that follow those seen so far. Returns fp32 logits [B, V] after the
  /// last of them.
  Tensor next_logits(const Tensor& tokens_N, const DecoderLook& look = {});
  int64_t length() const { return cache_.length; }
  int64_t num_positions() const { return num_positions_; }

 private:
  DecoderSpec spec_;  // of this rank
  ModelLayout layout_;
  HeadRules head_;
  UnitStore& units_;
  BlockUnits block_units_;
  int64_t batch_, num_positions_;
  std::vector<DecoderBlock> blocks_;
  KvCache cache_;
};

}  // namespace tycho
