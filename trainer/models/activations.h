// The activations of one micro-batch, laid out once in one arena: nothing is allocated for them after step 0.
#pragma once
#include <vector>

#include "trainer/families/decoder_spec.h"
#include "trainer/families/recompute_config.h"
#include "trainer/kernels/attention/attention.h"
#include "trainer/kernels/attention/packed_documents.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/model_layout.h"
#include "trainer/sharding/gathered_unit.h"

namespace tycho {

/// Source of dropout's random bits: probabilities, and a key of this step, micro-batch and block. A
/// probability is 0 when nothing is dropped.
struct DropoutSource {
  double p = 0;       // for tensors that are added to the residual stream, or for the embeddings
  double attn_p = 0;  // for attention's weights
  uint64_t key = 0;
  double adapter_p = 0;  // for the inputs of adapters
};

/// Memory that one block may use while it computes.
struct BlockActivations {
  Views& saved;                          // slots of this block, from forward to backward; those of
                                         // LibTorch are undefined until computed
  Views& kv_saved;                       // slots of the block whose keys and values it attends to
  Views& x_saved;                        // slots of the block whose input keys and values are projected from
  Tensor x_of_kv_SD;                     // input of the block of x_saved
  std::vector<Tensor>& attention_state;  // state of this block's attention; allocated by ATen, and empty on a
                                         // CPU
  Views& scratch;                        // shared with the other blocks: dead when the block returns
  DropoutSource dropout;
  const PackedDocuments& documents;  // documents of the pass
};

class Activations {
 public:
  /// Returns the bytes of the arena that these activations take.
  static int64_t bytes(const ActivationSpecs& specs, const RecomputeConfig& recompute, at::ScalarType dtype);
  /// Places the activations at the beginning of `arena`, which may be larger, and shared with others as long
  /// as only one of them has a pass in progress. `lent`: the memory of specs.lent, by block.
  Activations(const ActivationSpecs& specs, const RecomputeConfig& recompute, at::ScalarType dtype,
              Tensor arena, const std::vector<Tensor>& lent = {});

  const Tensor& arena() const { return arena_; }
  Tensor& arena() { return arena_; }

  /// Returns the activations of block i, in one of its sets. x_of_kv_SD: input from which its keys and values
  /// are projected.
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
  /// Gives back the memory of LibTorch that a block's attention left for its backward.
  void give_back(int64_t i, int64_t set);
  /// Slots that blocks share, dead between two blocks.
  Tensor& scratch(int slot) { return scratch_[static_cast<size_t>(slot)]; }
  /// Slots outside of the blocks, in the order of ActivationSpecs::model.
  Tensor& model(int slot) { return model_[static_cast<size_t>(slot)]; }

 private:
  Tensor arena_;
  std::vector<std::vector<Views>> saved_;        // by block, then by set
  std::vector<std::vector<size_t>> of_library_;  // by block: slots that LibTorch allocates
  std::vector<std::vector<std::vector<Tensor>>> attention_state_;
  Views scratch_, model_;
};

}  // namespace tycho
