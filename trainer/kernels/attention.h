// Causal self-attention over packed query, key and value rows: our own tiles on a CPU, ATen's flash attention
// on a GPU. fp32 and bf16 on a CPU (computed in fp32), bf16 on a GPU.
#pragma once
#include "trainer/kernels/kernel_table.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// What backward needs besides qkv.
struct AttentionSaved {
  Tensor& out_NE;              // [B*T, H*d]
  Tensor& log_sum_exp_BHT;     // fp32; used on a CPU
  std::vector<Tensor>& state;  // on a GPU: what ATen's attention returned for its backward; ATen's memory
};

/// Rules beyond a ScoreRules' scale are for a CPU: a GPU refuses them with an Error.
/// saved.out_NE = dropout(softmax(rules(q kᵀ))) v, causal. qkv_NC: [B*T, (H + 2K) * d], heads of q, then k,
/// then v; already rotated.
void attention(const AttentionShape& shape, const ScoreRules& rules, const Tensor& qkv_NC,
               AttentionSaved saved);

/// dqkv_NC from dout_NE.
void attention_backward(const AttentionShape& shape, const ScoreRules& rules, const Tensor& qkv_NC,
                        AttentionSaved saved, const Tensor& dout_NE, Tensor& dqkv_NC);

/// For generation: q_BTHd attends to the first num_keys positions of a cache [B, K, num_positions, d], the
/// last T of which are q's own (causal among them). Computed in the cache's dtype. Returns [B*T, H*d] of q's.
/// Documents are not told apart, and nothing is dropped.
Tensor attention_cached(const AttentionShape& shape, const ScoreRules& rules, const Tensor& q_BTHd,
                        const Tensor& key_cache, const Tensor& value_cache, int64_t num_keys);

}  // namespace tycho
