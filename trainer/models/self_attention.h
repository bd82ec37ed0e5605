// Causal self-attention of a decoder: projections, positions, scores.
#pragma once
#include "trainer/layout/decoder_layout.h"
#include "trainer/models/activations.h"
#include "trainer/models/kv_cache.h"
#include "trainer/models/linear.h"
#include "trainer/models/norm.h"

namespace tycho {

// N tokens, D width, H query heads, K kv heads, d head width, C = (H + 2K) d, E = H d.
/// y = out( softmax(rules(q kᵀ)) v ) + residual; q, k, v = rope(norm(clamp(qkv(x)))), each where the family
/// has it. (Vaswani et al. 2017; Ainslie et al. 2023, arXiv:2305.13245.)
class SelfAttention {
 public:
  SelfAttention(const DecoderSpec& spec, BatchShape shape, const at::Device& device);

  void forward(const Views& p, const Tensor& x_ND, const Tensor& residual_ND, BlockActivations act,
               Tensor& y_ND) const;
  /// dx_ND from dy_ND; gradients written to g, or added.
  void backward(const Views& p, const Tensor& x_ND, BlockActivations act, const Tensor& dy_ND, Views& g,
                bool add, Tensor& dx_ND) const;
  /// For generation: the tokens of x_ND follow those in the cache.
  Tensor forward_cached(const Views& p, const Tensor& x_ND, const Tensor& residual_ND, KvCache& cache,
                        int64_t layer) const;

 private:
  LinearParams qkv(const Views& p) const { return {p[at_.qkv_weight], view(p, at_.qkv_bias), spec_.in_out}; }
  LinearParams out(const Views& p) const { return {p[at_.out_weight], view(p, at_.out_bias), spec_.in_out}; }
  /// Clamps, and norms queries and keys, from raw into qkv.
  void change(const Views& p, const Tensor& raw_NC, Views& saved, Tensor& qkv_NC) const;
  void change_backward(const Views& p, Views& saved, Tensor& d_qkv_NC, Views& g, bool add) const;
  /// The model's rules, and this pass's documents and dropout.
  ScoreRules rules_for(const BlockActivations& act) const;
  void turn(Tensor& qkv_NC, int64_t seq, int64_t first_position, bool inverse) const;
  Tensor heads_of(const Tensor& qkv_NC, int64_t first_head, int64_t heads) const;

  DecoderSpec spec_;
  BlockParams at_;
  Norm norm_;  // of queries and keys
  AttentionShape shape_;
  at::Device device_;
  Tensor cos_sin_, slopes_H_;
  AlibiColumns alibi_;  // of slopes_H_, for flash attention
  ScoreRules rules_;
};

}  // namespace tycho
