// Causal self-attention over packed query, key and value rows, through ATen: flash attention on CPU and GPU.
// fp32 and bf16 on a CPU (bf16 in fp32 where it has no bf16 units), bf16 on a GPU.
#pragma once
#include "trainer/kernels/tensor.h"

namespace tycho {

struct AttentionShape {
  int64_t batch = 0, seq = 0, heads = 0, kv_heads = 0, head_dim = 0;
};

/// What backward needs, owned by ATen: out_NE is [B*T, H*d] contiguous; stats is the log-sum-exp (and on CUDA
/// the counters that the device's attention returned).
struct AttentionSaved {
  Tensor out_NE;
  std::vector<Tensor> stats;
};

/// out = softmax(causal(q kᵀ / sqrt(d))) v. qkv_NC: [B*T, (H + 2K) * d], heads of q, then k, then v; already
/// rotated.
AttentionSaved attention(const AttentionShape& shape, const Tensor& qkv_NC);

/// dqkv_NC from dout_NE.
void attention_backward(const AttentionShape& shape, const Tensor& qkv_NC, const AttentionSaved& saved,
                        const Tensor& dout_NE, Tensor& dqkv_NC);

/// For generation: q_BTHd attends to the first num_keys positions of a cache [B, num_positions, K, d], the
/// last T of which are q's own (causal among them). Returns [B*T, H*d].
Tensor attention_cached(const AttentionShape& shape, const Tensor& q_BTHd, const Tensor& key_cache,
                        const Tensor& value_cache, int64_t num_keys);

}  // namespace tycho
