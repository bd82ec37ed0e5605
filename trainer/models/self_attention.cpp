// Causal self-attention with rotary positions and grouped query heads.
#include "trainer/models/self_attention.h"

#include "trainer/kernels/matmul.h"
#include "trainer/kernels/rope.h"

namespace tycho {

SelfAttention::SelfAttention(const AttentionShape& shape, double rope_theta, const at::Device& device)
    : shape_(shape),
      rules_{.scale = default_scale(shape.head_dim)},
      cos_sin_(rope_table(shape.seq, shape.head_dim, rope_theta).to(device)) {}

void SelfAttention::forward(Params p, const Tensor& x_ND, const Tensor& residual_ND, Tensor& qkv_NC,
                            AttentionSaved saved, Tensor& y_ND) const {
  matmul_nt(x_ND, p.qkv_CD, qkv_NC);
  rope(qkv_NC, cos_sin_, shape_.seq, 0, shape_.heads + shape_.kv_heads, shape_.head_dim, /*inverse=*/false);
  attention(shape_, rules_, qkv_NC, saved);
  matmul_nt_add(saved.out_NE, p.o_DE, residual_ND, y_ND);
}

void SelfAttention::backward(Params p, const Tensor& x_ND, const Tensor& qkv_NC, AttentionSaved saved,
                             const Tensor& dy_ND, Grads g, bool add, Scratch scratch, Tensor& dx_ND) const {
  matmul_nn(dy_ND, p.o_DE, scratch.d_attention_NE);
  matmul_tn(dy_ND, saved.out_NE, g.o_DE, add);
  attention_backward(shape_, rules_, qkv_NC, saved, scratch.d_attention_NE, scratch.d_qkv_NC);
  rope(scratch.d_qkv_NC, cos_sin_, shape_.seq, 0, shape_.heads + shape_.kv_heads, shape_.head_dim,
       /*inverse=*/true);
  matmul_nn(scratch.d_qkv_NC, p.qkv_CD, dx_ND);
  matmul_tn(scratch.d_qkv_NC, x_ND, g.qkv_CD, add);
}

Tensor SelfAttention::forward_cached(Params p, const Tensor& x_ND, const Tensor& residual_ND, KvCache& cache,
                                     int64_t layer) const {
  Tensor& keys = cache.keys[static_cast<size_t>(layer)];
  Tensor& values = cache.values[static_cast<size_t>(layer)];
  const int64_t batch = keys.size(0), seq = x_ND.size(0) / batch;
  const int64_t heads = shape_.heads, kv_heads = shape_.kv_heads, dim = shape_.head_dim;
  Tensor qkv_NC = at::empty({x_ND.size(0), p.qkv_CD.size(0)}, x_ND.options());
  matmul_nt(x_ND, p.qkv_CD, qkv_NC);
  rope(qkv_NC, cos_sin_, seq, cache.length, heads + kv_heads, dim, /*inverse=*/false);
  const Tensor heads_BTHd = qkv_NC.view({batch, seq, heads + 2 * kv_heads, dim});
  keys.narrow(1, cache.length, seq).copy_(heads_BTHd.narrow(2, heads, kv_heads));
  values.narrow(1, cache.length, seq).copy_(heads_BTHd.narrow(2, heads + kv_heads, kv_heads));
  const AttentionShape shape = {batch, seq, heads, kv_heads, dim};
  const Tensor out_NE =
      attention_cached(shape, heads_BTHd.narrow(2, 0, heads).contiguous(), keys, values, cache.length + seq);
  Tensor y_ND = at::empty_like(residual_ND);
  matmul_nt_add(out_NE, p.o_DE, residual_ND, y_ND);
  return y_ND;
}

}  // namespace tycho
