// Attention as plain products and a softmax: every rule on any device, for a few queries over a cache, and
// where a GPU's flash attention does not support a rule.
#pragma once
#include "trainer/kernels/attention/attention_rows.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// Computes out_NE [B*T, H*d] from rows, fp32 or bf16; scores and softmax in fp32. Takes a few heads of a
/// sequence at a time: scores of at most 64 MiB exist at once, or of one key head. Parts of the keys: see
/// attention(). Pointers of `rules` are to memory of the rows' device. log_sum_exp_BHT: fp32, for backward.
void product_attention(const AttentionShape& shape, const ScoreRules& rules, const AttentionRows& rows,
                       Tensor& out_NE, Tensor& log_sum_exp_BHT);
/// Computes the gradients of rows from dout_NE.
void product_attention_backward(const AttentionShape& shape, const ScoreRules& rules,
                                const AttentionRows& rows, const Tensor& out_NE,
                                const Tensor& log_sum_exp_BHT, const Tensor& dout_NE,
                                const AttentionRows& gradients);

/// For generation: q_BTHd attends to the first num_keys positions of a cache [B, K, num_positions, d], the
/// last T of which are q's own (causal among them). Computed in the cache's dtype. Returns [B*T, H*d] in q's
/// dtype. Documents are not separated, and there is no dropout. For a long prompt some queries are taken at a
/// time: scores of at most 64 MiB exist at once, or of one query.
Tensor attention_cached(const AttentionShape& shape, const ScoreRules& rules, const Tensor& q_BTHd,
                        const Tensor& key_cache, const Tensor& value_cache, int64_t num_keys);

/// Returns the attention weight of each key, [B, H, T, num_keys] in fp32; the arguments are those of
/// attention_cached. For inspection: not optimised for speed.
Tensor attention_weights(const AttentionShape& shape, const ScoreRules& rules, const Tensor& q_BTHd,
                         const Tensor& key_cache, int64_t num_keys);

}  // namespace tycho
