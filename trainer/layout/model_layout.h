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

struct LossConfig;

/// Tokens that pass through the model at once.
struct BatchShape {
  int64_t batch = 1;  // B sequences
  int64_t seq = 1;    // T tokens each
  int64_t tokens() const { return batch * seq; }
};

/// Numbers that the head keeps of each token.
struct LossSlots {
  int64_t losses = 1;      // of every token: its cross-entropy, and the terms of a loss of the recipe's own
  int64_t statistics = 0;  // of a token of a chunk, for losses that are not the fused cross-entropy
};
/// Statistics of a token, and gradients by them.
inline constexpr int64_t kStatisticsOfToken = 13;
/// Returns the numbers that a loss needs, where targets have weights or all weigh 1.
LossSlots loss_slots(const LossConfig& loss, bool has_weights);

/// Activations of one micro-batch. Every block has the same saved slots, though some may be empty; the other
/// slots exist once.
struct ActivationSpecs {
  std::vector<std::vector<SlotSpec>> saved;  // slots of each block, kept from its forward to its backward
  std::vector<SlotSpec> scratch;             // slots of the block that is computing
  std::vector<SlotSpec>
      model;  // outside of the blocks: final norm, logits chunk, gradients of the residual stream
  int64_t head_chunk = 0;         // number of tokens whose logits exist at once
  std::vector<int64_t> num_sets;  // number of sets of each block's saved slots: one for each micro-batch that
                                  // a stage keeps; empty: one
  std::vector<int64_t> lent;      // bytes of each block's gradient, free until its backward; empty: none

  int64_t sets_of(int64_t block) const { return num_sets.empty() ? 1 : num_sets[static_cast<size_t>(block)]; }
};
/// Bytes of a slot in an arena when the compute dtype has compute_bytes; slots start at whole cache lines.
int64_t slot_bytes(const SlotSpec& slot, int64_t compute_bytes);

struct ModelLayout {
  std::vector<UnitSpec> units;  // in forward order: embedding, blocks, head; then the adapters of blocks
  int64_t num_blocks = 0;
  int64_t num_params() const;
  int64_t num_adapter_params() const;
  /// Number of parameters that take part in a matrix product per token, with the head and without the
  /// embedding look-up.
  int64_t num_matmul_params = 0;
  /// Width of all heads together, for the attention term of the FLOPs.
  int64_t attention_width = 0;
  int64_t width = 0, vocab_size = 0;
  bool tied = false;  // the head multiplies by the embedding table of unit 0

  /// FLOPs per token: 6 N + 12 L (H d) T, with attention counted as if not causal (PaLM, arXiv:2204.02311
  /// appendix B). With adapters 4 N + 6 A + 12 L (H d) T: the N parameters below the A of adapters have no
  /// gradient.
  double flops_per_token_full(int64_t seq) const;
  /// FLOPs per token that a causal model needs: 6 N + 6 L (H d) T.
  double flops_per_token_causal(int64_t seq) const;

 private:
  double product_flops() const;
};

/// Places of slots in gradients that blocks lend (ActivationSpecs::lent): the head's in that of the last
/// block, and those that a block keeps in that of the block before it, whose backward comes next. The slots
/// of each are in order, up to the first that does not fit: a narrower model has at least as many of them
/// there.
struct LentSlots {
  static constexpr int64_t kOwn = -1;       // not in a gradient
  std::vector<std::vector<int64_t>> saved;  // offsets in bytes, by block and slot
  std::vector<int64_t> model;
  int64_t num_bytes = 0;
};
LentSlots lent_slots(const ActivationSpecs& specs, const RecomputeConfig& recompute, int64_t compute_bytes);

/// Bytes of activations that are not in gradients: of the slots that all blocks keep; of the one set that
/// recomputing blocks share, in which each slot is as large as the largest of these blocks'; of scratch and
/// the slots outside of blocks. `of_library`: of the first two kinds, in LibTorch's memory, which all()
/// leaves out.
struct ActivationBytes {
  int64_t kept = 0, shared = 0, other = 0, of_library = 0;
  int64_t all() const { return kept + shared + other; }
};
ActivationBytes activation_bytes(const ActivationSpecs& specs, const RecomputeConfig& recompute,
                                 int64_t compute_bytes);
/// Bytes of that slot in the shared set; 0 when every block keeps it, or LibTorch allocates it.
int64_t shared_slot_bytes(const ActivationSpecs& specs, const RecomputeConfig& recompute, size_t slot,
                          int64_t compute_bytes);
/// True if a block of that mode computes the slot again.
bool is_recomputed(const SlotSpec& slot, Recompute mode);

/// Returns the layout of a model of any family.
ModelLayout model_layout(const ModelConfig& config);
/// Returns the activations of a micro-batch of `shape`, whole sequences, that the ranks of `cp` share.
ActivationSpecs activation_specs(const ModelConfig& config, BatchShape shape, int64_t compute_bytes,
                                 bool on_gpu = false, const TpShape& tp = {}, const CpShape& cp = {},
                                 const LossSlots& loss = {});

}  // namespace tycho
