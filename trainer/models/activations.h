// The activations of one micro-batch, laid out once in one arena: nothing is allocated for them after step 0.
#pragma once
#include <vector>

#include "trainer/families/recompute_config.h"
#include "trainer/kernels/attention/attention.h"
#include "trainer/kernels/attention/packed_documents.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/decoder_spec.h"
#include "trainer/layout/model_layout.h"
#include "trainer/units/gathered_unit.h"

namespace tycho {

/// What dropout's bits are drawn from: a key of this step, micro-batch and block. A share is 0 when nothing
/// is dropped.
struct DropoutSource {
  double p = 0;       // of what is added to the residual stream, or of the embeddings
  double attn_p = 0;  // of attention's weights
  uint64_t key = 0;
  double adapter_p = 0;  // of the inputs of adapters
};

/// What one block may use while it computes.
struct BlockActivations {
  Views& saved;                          // its own, from forward to backward
  Views& kv_saved;                       // of the block whose keys and values it attends to
  Views& x_saved;                        // of the block whose input they are projected from
  Tensor x_of_kv_SD;                     // that input
  std::vector<Tensor>& attention_state;  // its own; the bytes are ATen's, and none on a CPU
  Views& scratch;                        // shared with the other blocks: dead when it returns
  DropoutSource dropout;
  const PackedDocuments& documents;  // of the pass
};

class Activations {
 public:
  /// Bytes of the arena that they take.
  static int64_t bytes(const ActivationSpecs& specs, const RecomputeConfig& recompute, at::ScalarType dtype);
  /// At the beginning of `arena`, which may be larger and hold others of which no pass is under way.
  Activations(const ActivationSpecs& specs, const RecomputeConfig& recompute, at::ScalarType dtype,
              Tensor arena);

  const Tensor& arena() const { return arena_; }

  /// block: the i-th, in one of its sets. x_of_kv_SD: what its keys and values are projected from.
  BlockActivations block(int64_t i, int64_t set, const BlockSpec& block, Tensor x_of_kv_SD,
                         DropoutSource dropout, const PackedDocuments& documents) {
    const auto at = [&](int64_t other) -> Views& {
      return saved_[static_cast<size_t>(other)][static_cast<size_t>(set)];
    };
    return {at(i),
            at(block.kv_block),
            at(block.x_block),
            std::move(x_of_kv_SD),
            attention_state_[static_cast<size_t>(i)][static_cast<size_t>(set)],
            scratch_,
            dropout,
            documents};
  }
  /// Slots that blocks share, dead between two of them.
  Tensor& scratch(int slot) { return scratch_[static_cast<size_t>(slot)]; }
  /// Slots around the blocks, in the order of ActivationSpecs::model.
  Tensor& model(int slot) { return model_[static_cast<size_t>(slot)]; }

 private:
  Tensor arena_;
  std::vector<std::vector<Views>> saved_;  // of each block, its sets
  std::vector<std::vector<std::vector<Tensor>>> attention_state_;
  Views scratch_, model_;
};

}  // namespace tycho
