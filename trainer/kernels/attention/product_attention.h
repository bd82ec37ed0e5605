// Attention as plain products and a softmax: every rule on any device, for a few queries over a cache, and
// where a GPU's flash attention does not know a rule.
#pragma once
#include "trainer/kernels/attention/attention_rows.h"
#include "trainer/kernels/kernel_table.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// out_NE [B*T, H*d] from rows, fp32 or bf16; scores and softmax in fp32. Heads of a sequence are taken a few
/// at a time: scores of at most 64 MiB exist at once, or of one key head. Parts of the keys as attention().
/// Pointers of `rules` are to memory of the rows' device. log_sum_exp_BHT: fp32, for backward.
void product_attention(const AttentionShape& shape, const ScoreRules& rules, const AttentionRows& rows,
                       Tensor& out_NE, Tensor& log_sum_exp_BHT);
/// Gradients of rows from dout_NE.
void product_attention_backward(const AttentionShape& shape, const ScoreRules& rules,
                                const AttentionRows& rows, const Tensor& out_NE,
                                const Tensor& log_sum_exp_BHT, const Tensor& dout_NE,
                                const AttentionRows& gradients);

/// For generation: q_BTHd attends to the first num_keys positions of a cache [B, K, num_positions, d], the
/// last T of which are q's own (causal among them). Computed in the cache's dtype. Returns [B*T, H*d] of q's.
/// Documents are not told apart, and nothing is dropped. Of a long prompt some queries are taken at a time:
/// scores of at most 64 MiB exist at once, or of one query.
Tensor attention_cached(const AttentionShape& shape, const ScoreRules& rules, const Tensor& q_BTHd,
                        const Tensor& key_cache, const Tensor& value_cache, int64_t num_keys);

/// Returns the share of each key in what a query attends to, [B, H, T, num_keys] in fp32; the arguments are
/// those of attention_cached. For people who look, not for speed.
Tensor attention_weights(const AttentionShape& shape, const ScoreRules& rules, const Tensor& q_BTHd,
                         const Tensor& key_cache, int64_t num_keys);

}  // namespace tycho
