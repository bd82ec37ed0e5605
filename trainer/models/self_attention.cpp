// Causal self-attention of a decoder: projections, positions, scores.
#include "trainer/models/self_attention.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>

#include "trainer/kernels/attention.h"
#include "trainer/kernels/clamp.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/kernels/product_attention.h"
#include "trainer/kernels/rope.h"
#include "trainer/kernels/rope_frequencies.h"
#include "trainer/models/residual.h"

namespace tycho {
namespace {

AttentionSaved attention_saved(BlockActivations act) {
  return {act.saved[block_saved::kAttention], act.saved[block_saved::kLogSumExp], act.attention_state};
}

}  // namespace

SelfAttention::SelfAttention(const DecoderSpec& spec, BatchShape shape, const at::Device& device)
    : spec_(spec),
      at_(block_params(spec)),
      norm_(NormKind::kLayer, spec.qk_norm_eps),
      shape_{shape.batch, shape.seq, spec.heads, spec.kv_heads, spec.head_dim},
      device_(device) {
  if (spec.rope_theta > 0)
    cos_sin_ =
        rope_table(shape.seq, rope_frequencies(spec.head_dim, spec.rope_theta, spec.rope_scaling, shape.seq))
            .to(device);
  if (spec.alibi_bias_max > 0)
    slopes_H_ = at::tensor(alibi_slopes(spec.heads, spec.alibi_bias_max), at::kFloat).to(device);
  rules_.scale = static_cast<float>(spec.softmax_scale);
  rules_.softcap = static_cast<float>(spec.attn_softcap);
  rules_.window = spec.window;
  if (!slopes_H_.defined()) return;
  rules_.alibi_H = slopes_H_.const_data_ptr<float>();
  if (!device.is_cpu() && shape.seq <= kMostAlibiPositions)
    alibi_ = alibi_columns(slopes_H_, rules_.scale, shape.seq);
}

ScoreRules SelfAttention::rules_for(const BlockActivations& act) const {
  ScoreRules rules = rules_;
  if (act.dropout.attn_p > 0) rules.dropout = dropout_mask(act.dropout, DropoutSite::kScores);
  if (const Tensor& number_N = act.documents.number_N; number_N.defined()) {
    check_tensor("model", "documents", number_N, {shape_.batch * shape_.seq}, at::kInt, device_);
    rules.document_BT = number_N.const_data_ptr<int32_t>();
  }
  return rules;
}

Tensor SelfAttention::heads_of(const Tensor& qkv_NC, int64_t first_head, int64_t heads) const {
  return qkv_NC.narrow(1, first_head * spec_.head_dim, heads * spec_.head_dim);
}

void SelfAttention::turn(Tensor& qkv_NC, int64_t seq, int64_t first_position, bool inverse) const {
  if (spec_.rope_theta > 0)
    rope(qkv_NC, cos_sin_, seq, first_position, spec_.heads + spec_.kv_heads, spec_.head_dim, inverse);
}

void SelfAttention::change(const Views& p, const Tensor& raw_NC, Views& saved, Tensor& qkv_NC) const {
  if (spec_.clip_qkv > 0)
    clamp(spec_.clip_qkv, raw_NC, qkv_NC);
  else
    qkv_NC.copy_(raw_NC);
  if (spec_.qk_norm == QkNorm::kNone) return;
  Tensor q = heads_of(qkv_NC, 0, spec_.heads), k = heads_of(qkv_NC, spec_.heads, spec_.kv_heads);
  norm_.forward({p[at_.q_norm_weight], view(p, at_.q_norm_bias)}, q,
                {saved[block_saved::kQMean], saved[block_saved::kQInv]}, q);
  norm_.forward({p[at_.k_norm_weight], view(p, at_.k_norm_bias)}, k,
                {saved[block_saved::kKMean], saved[block_saved::kKInv]}, k);
}

void SelfAttention::change_backward(const Views& p, Views& saved, Tensor& d_qkv_NC, Views& g,
                                    bool add) const {
  const Tensor& raw_NC = saved[block_saved::kQkvRaw];
  if (spec_.qk_norm != QkNorm::kNone) {
    // Attention is done with qkv: its memory holds once more what the norms saw.
    Tensor& clamped_NC = saved[block_saved::kQkv];
    if (spec_.clip_qkv > 0)
      clamp(spec_.clip_qkv, raw_NC, clamped_NC);
    else
      clamped_NC.copy_(raw_NC);
    Tensor dq = heads_of(d_qkv_NC, 0, spec_.heads), dk = heads_of(d_qkv_NC, spec_.heads, spec_.kv_heads);
    norm_.backward({p[at_.q_norm_weight], view(p, at_.q_norm_bias)}, heads_of(clamped_NC, 0, spec_.heads),
                   {saved[block_saved::kQMean], saved[block_saved::kQInv]}, dq, dq, /*add_to_dx=*/false,
                   {g[at_.q_norm_weight], view(g, at_.q_norm_bias)}, add);
    norm_.backward({p[at_.k_norm_weight], view(p, at_.k_norm_bias)},
                   heads_of(clamped_NC, spec_.heads, spec_.kv_heads),
                   {saved[block_saved::kKMean], saved[block_saved::kKInv]}, dk, dk, /*add_to_dx=*/false,
                   {g[at_.k_norm_weight], view(g, at_.k_norm_bias)}, add);
  }
  if (spec_.clip_qkv > 0) clamp_backward(spec_.clip_qkv, raw_NC, d_qkv_NC, d_qkv_NC);
}

void SelfAttention::forward(const Views& p, const Tensor& x_ND, const Tensor& residual_ND,
                            BlockActivations act, Tensor& y_ND) const {
  Tensor& qkv_NC = act.saved[block_saved::kQkv];
  Tensor& raw_NC = spec_.changes_qkv() ? act.saved[block_saved::kQkvRaw] : qkv_NC;
  linear(qkv(p), x_ND, raw_NC);
  if (spec_.changes_qkv()) change(p, raw_NC, act.saved, qkv_NC);
  turn(qkv_NC, shape_.seq, 0, /*inverse=*/false);
  attention(shape_, rules_for(act), qkv_NC, attention_saved(act), {alibi_, act.documents});
  add_to_stream(out(p), act.saved[block_saved::kAttention], residual_ND, act, DropoutSite::kAttention, y_ND);
}

void SelfAttention::backward(const Views& p, const Tensor& x_ND, BlockActivations act, const Tensor& dy_ND,
                             Views& g, bool add, Tensor& dx_ND) const {
  Tensor &d_qkv_NC = act.scratch[block_scratch::kDQkv],
         &d_attention_NE = act.scratch[block_scratch::kDAttention];
  const Tensor& d_added_ND = added_gradient(dy_ND, act, DropoutSite::kAttention);
  linear_input_gradient(out(p), d_added_ND, d_attention_NE);
  linear_weight_gradient(out(p), act.saved[block_saved::kAttention], d_added_ND,
                         {g[at_.out_weight], view(g, at_.out_bias)}, add);
  attention_backward(shape_, rules_for(act), act.saved[block_saved::kQkv], attention_saved(act),
                     d_attention_NE, d_qkv_NC, {alibi_, act.documents});
  turn(d_qkv_NC, shape_.seq, 0, /*inverse=*/true);
  if (spec_.changes_qkv()) change_backward(p, act.saved, d_qkv_NC, g, add);
  linear_input_gradient(qkv(p), d_qkv_NC, dx_ND);
  linear_weight_gradient(qkv(p), x_ND, d_qkv_NC, {g[at_.qkv_weight], view(g, at_.qkv_bias)}, add);
}

Tensor SelfAttention::forward_cached(const Views& p, const Tensor& x_ND, const Tensor& residual_ND,
                                     KvCache& cache, int64_t layer) const {
  Tensor& keys = cache.keys[static_cast<size_t>(layer)];
  Tensor& values = cache.values[static_cast<size_t>(layer)];
  const int64_t batch = keys.size(0), seq = x_ND.size(0) / batch;
  const int64_t heads = spec_.heads, kv_heads = spec_.kv_heads, dim = spec_.head_dim;
  Tensor qkv_NC = at::empty({x_ND.size(0), spec_.qkv_width()}, x_ND.options());
  linear(qkv(p), x_ND, qkv_NC);
  if (spec_.clip_qkv > 0) clamp(spec_.clip_qkv, qkv_NC, qkv_NC);
  if (spec_.qk_norm != QkNorm::kNone) {
    heads_of(qkv_NC, 0, heads)
        .copy_(norm_.apply({p[at_.q_norm_weight], view(p, at_.q_norm_bias)}, heads_of(qkv_NC, 0, heads)));
    heads_of(qkv_NC, heads, kv_heads)
        .copy_(
            norm_.apply({p[at_.k_norm_weight], view(p, at_.k_norm_bias)}, heads_of(qkv_NC, heads, kv_heads)));
  }
  turn(qkv_NC, seq, cache.length, /*inverse=*/false);
  const Tensor heads_BTHd = qkv_NC.view({batch, seq, heads + 2 * kv_heads, dim});
  keys.narrow(2, cache.length, seq).copy_(heads_BTHd.narrow(2, heads, kv_heads).transpose(1, 2));
  values.narrow(2, cache.length, seq).copy_(heads_BTHd.narrow(2, heads + kv_heads, kv_heads).transpose(1, 2));
  const AttentionShape shape = {batch, seq, heads, kv_heads, dim};
  const Tensor out_NE = attention_cached(shape, rules_, heads_BTHd.narrow(2, 0, heads).contiguous(), keys,
                                         values, cache.length + seq);
  Tensor y_ND = at::empty_like(residual_ND);
  linear_add(out(p), out_NE, residual_ND, y_ND);
  return y_ND;
}

}  // namespace tycho
