// Causal self-attention over rows of queries, keys and values: our own tiles on a CPU, flash attention
// (ATen's or FlashAttention-3), cuDNN or plain products on a GPU. fp32 and bf16; bf16 is computed in fp32 on
// a CPU.
#pragma once
#include "trainer/kernels/attention/attention_rows.h"
#include "trainer/kernels/attention/flash_attention.h"
#include "trainer/kernels/attention/rope.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// Results of the forward pass that the backward pass needs in addition to the rows.
struct AttentionSaved {
  Tensor& out_NE;              // [B*T, H*d]; undefined: flash attention and cuDNN set it to their own result
  Tensor& log_sum_exp_BHT;     // fp32; for tiles, products and parts of the keys
  std::vector<Tensor>& state;  // for flash attention and cuDNN: state for the backward, in ATen's memory
};

enum class AttentionRoute { kTiles, kFlash, kFlash3, kCudnn, kProducts };
/// Returns the implementation: tiles on a CPU; on a GPU flash attention where it can
/// (base/attention_limits.h), else plain products; with rules.flash_3 FlashAttention-3 where it can, and with
/// rules.any_order then cuDNN where it can.
AttentionRoute attention_route(const at::Device& device, at::ScalarType type, const AttentionShape& shape,
                               const ScoreRules& rules);
/// True for flash attention of either version.
inline bool is_flash(AttentionRoute route) {
  return route == AttentionRoute::kFlash || route == AttentionRoute::kFlash3;
}

/// Computes saved.out_NE = dropout(softmax(rules(q kᵀ))) v, causal by positions; rows are already rotated.
/// `flash` holds the tensors that `rules` points to, and is used on a GPU only.
void attention(const AttentionShape& shape, const ScoreRules& rules, const AttentionRows& rows,
               AttentionSaved saved, const FlashRules& flash = {});

/// Writes `gradients` of the rows from dout_NE. Keys that no query sees get zeros. Returns true if they are
/// rotated back by `rotation` already: flash attention 2 and cuDNN do that while they pack gradients of whole
/// sequences, and FlashAttention-3 with ALiBi.
///
/// For a part of the keys (AttentionShape), saved.out_NE is the fp32 sum in forward; in backward it is the
/// result over all parts, rounded to the rows' dtype. `gradients` are then fp32, and those of q are added.
bool attention_backward(const AttentionShape& shape, const ScoreRules& rules, const AttentionRows& rows,
                        AttentionSaved saved, const Tensor& dout_NE, const AttentionRows& gradients,
                        const FlashRules& flash = {}, const RopeTables& rotation = {});

}  // namespace tycho
