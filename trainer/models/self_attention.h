// Causal self-attention with rotary positions and grouped query heads.
#pragma once
#include "trainer/models/block.h"

namespace tycho {

// N tokens, D width, H query heads, K kv heads, d head width, C = (H + 2K) d, E = H d.
/// y = o( softmax(causal(rope(q) rope(k)ᵀ / sqrt(d))) v ) + residual, q, k, v = qkv(x).   (Vaswani et al.
/// 2017; Ainslie et al. 2023, arXiv:2305.13245.) forward keeps the rotated qkv_NC and what attention
/// saves.
class SelfAttention {
 public:
  struct Params {
    const Tensor& qkv_CD;
    const Tensor& o_DE;
  };
  struct Grads {
    Tensor& qkv_CD;
    Tensor& o_DE;
  };
  struct Scratch {
    Tensor& d_qkv_NC;
    Tensor& d_attention_NE;
  };
  SelfAttention(const AttentionShape& shape, double rope_theta, const at::Device& device);

  void forward(Params p, const Tensor& x_ND, const Tensor& residual_ND, Tensor& qkv_NC, AttentionSaved saved,
               Tensor& y_ND) const;
  /// dx_ND from dy_ND; gradients written to g, or added.
  void backward(Params p, const Tensor& x_ND, const Tensor& qkv_NC, AttentionSaved saved, const Tensor& dy_ND,
                Grads g, bool add, Scratch scratch, Tensor& dx_ND) const;
  Tensor forward_cached(Params p, const Tensor& x_ND, const Tensor& residual_ND, KvCache& cache,
                        int64_t layer) const;

 private:
  AttentionShape shape_;
  ScoreRules rules_;
  Tensor cos_sin_;
};

}  // namespace tycho
