// A model's parameters, activations and arithmetic, from its config alone. Torch-free: `tycho plan` and the
// engine read the same lists.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/families/config.h"
#include "trainer/families/recompute_config.h"
#include "trainer/layout/cp_shape.h"
#include "trainer/layout/param_spec.h"
#include "trainer/layout/tp_parts.h"

namespace tycho {

/// Tokens that pass through at once.
struct BatchShape {
  int64_t batch = 1;  // B sequences
  int64_t seq = 1;    // T tokens each
  int64_t tokens() const { return batch * seq; }
};

/// The activations of one micro-batch. Saved slots exist once per block, the same ones in each, though some
/// may be empty; the others exist once.
struct ActivationSpecs {
  std::vector<std::vector<SlotSpec>> saved;  // of each block, from its forward to its backward
  std::vector<SlotSpec> scratch;             // of whichever block is computing
  std::vector<SlotSpec>
      model;               // around the blocks: final norm, logits chunk, gradients of the residual stream
  int64_t head_chunk = 0;  // tokens whose logits exist at once
  std::vector<int64_t>
      num_sets;  // of each block's saved slots: one for each micro-batch that a stage keeps; empty: one

  int64_t sets_of(int64_t block) const { return num_sets.empty() ? 1 : num_sets[static_cast<size_t>(block)]; }
};
/// Bytes of a slot when the compute dtype has compute_bytes; slots start at whole cache lines.
int64_t slot_bytes(const SlotSpec& slot, int64_t compute_bytes);

struct ModelLayout {
  std::vector<UnitSpec> units;  // in forward order: embedding, blocks, head; then the adapters of blocks
  int64_t num_blocks = 0;
  int64_t num_params() const;
  /// Those of adapters.
  int64_t num_adapter_params() const;
  /// Parameters that take part in a matrix product per token: the head counts, the embedding look-up does
  /// not.
  int64_t num_matmul_params = 0;
  /// Width of all heads together: for the attention term of the FLOPs.
  int64_t attention_width = 0;
  int64_t width = 0, vocab_size = 0;
  bool tied = false;  // the head multiplies by the embedding table of unit 0

  /// 6 N + 12 L (H d) T: attention counted as if not causal (PaLM, arXiv:2204.02311 appendix B). With
  /// adapters 4 N + 6 A + 12 L (H d) T: no gradient of the N parameters below the A of adapters.
  double flops_per_token_full(int64_t seq) const;
  /// 6 N + 6 L (H d) T: the work a causal model must do.
  double flops_per_token_causal(int64_t seq) const;

 private:
  double product_flops() const;
};

/// Bytes of what all blocks keep, and of the one set that those which compute again share, each slot as large
/// as the largest of theirs.
struct SavedBytes {
  int64_t kept = 0, shared = 0;
};
SavedBytes saved_bytes(const ActivationSpecs& specs, const RecomputeConfig& recompute, int64_t compute_bytes);
/// Bytes of that slot in the shared set; 0 when every block keeps it.
int64_t shared_slot_bytes(const ActivationSpecs& specs, const RecomputeConfig& recompute, size_t slot,
                          int64_t compute_bytes);
/// Whether a block of that mode computes the slot again.
bool is_recomputed(const SlotSpec& slot, Recompute mode);

/// Any family, by its config.
ModelLayout model_layout(const ModelConfig& config);
/// Of a micro-batch of `shape`, whole sequences, that the ranks of `cp` share.
ActivationSpecs activation_specs(const ModelConfig& config, BatchShape shape, int64_t compute_bytes,
                                 bool on_gpu = false, const TpShape& tp = {}, const CpShape& cp = {});

}  // namespace tycho
