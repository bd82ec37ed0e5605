// Reuses activation memory that attention no longer needs for gradients.
#include "trainer/models/self_attention.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/decoder_slots.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>

#include "trainer/kernels/attention/attention.h"
#include "trainer/kernels/attention/product_attention.h"
#include "trainer/kernels/attention/rope_frequencies.h"
#include "trainer/kernels/clamp.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/kernels/one_thread.h"
#include "trainer/kernels/temperature.h"
#include "trainer/models/context/ring_attention.h"

namespace tycho {
namespace {

AttentionSaved attention_saved(BlockActivations act) {
  return {act.saved[block_saved::kAttention], act.saved[block_saved::kLogSumExp], act.attention_state};
}

RingWorkspace ring_workspace(BlockActivations act) {
  return {act.scratch[block_scratch::kRingKv], act.scratch[block_scratch::kRingDKv],
          act.scratch[block_scratch::kRingSum]};
}

/// Returns the shape of this rank's queries over all keys.
AttentionShape attention_shape(const DecoderSpec& spec, BatchShape shape, const CpShape& cp) {
  AttentionShape s = {shape.batch, shape.seq / cp.size, spec.attention.heads, spec.attention.kv_heads,
                      spec.attention.head_dim};
  if (cp.size == 1) return s;
  const auto [early, late] = cp_spans(shape.seq, cp);
  s.keys = shape.seq;
  s.early = {early.first, early.count}, s.late = {late.first, late.count};
  return s;
}

RopeTables rope_tables(const RotarySpec& rotary, int64_t seq, int64_t longest) {
  const RopeFrequencies frequencies = rope_frequencies(rotary.dim, rotary.theta, rotary.scaling, longest);
  if (rotary.xpos_scale_base > 0) return xpos_tables(seq, frequencies, rotary.xpos_scale_base);
  return {rope_table(seq, frequencies), {}};
}

}  // namespace

AttentionTables attention_tables(const DecoderSpec& spec, BatchShape shape, int64_t longest,
                                 const at::Device& device, const ContextRegion& context) {
  AttentionTables tables;
  for (const RotarySpec& rotary : spec.positions.rotary) {
    tables.rotary.push_back(rope_tables(rotary, shape.seq, longest));
    for (Tensor* table : {&tables.rotary.back().queries, &tables.rotary.back().keys})
      if (table->defined()) *table = (context.is_shared() ? context.own_rows(*table) : *table).to(device);
  }
  if (spec.positions.alibi_bias_max == 0) return tables;
  const Tensor slopes =
      at::tensor(alibi_slopes(spec.attention.all_heads, spec.positions.alibi_bias_max), at::kFloat);
  tables.slopes_H = slopes.narrow(0, spec.attention.first_head, spec.attention.heads).to(device);
  if (!device.is_cpu() && shape.seq <= kMostAlibiPositions)
    tables.alibi =
        alibi_columns(tables.slopes_H, static_cast<float>(spec.attention.softmax_scale), shape.seq);
  return tables;
}

SelfAttention::SelfAttention(const DecoderSpec& spec, int64_t block, BatchShape shape,
                             const AttentionTables& tables, const at::Device& device,
                             const ParallelRegion& region)
    : attn_(spec.attention),
      in_out_(spec.in_out),
      region_(region),
      block_(spec.block(block)),
      reuses_(spec.reuses_kv(block)),
      last_to_reuse_(reuses_ && spec.last_user_of_kv(block_.kv_block) == block),
      reused_(!reuses_ && spec.last_user_of_kv(block) != block),
      reuses_x_(spec.reuses_x(block)),
      at_(block_params(spec, block)),
      norm_(spec, at_, /*has_keys=*/!reuses_, region),
      shape_(attention_shape(spec, shape, region.context().shape())),
      device_(device),
      end_(spec, at_, DropoutSite::kAttention, region) {
  rules_.scale = static_cast<float>(spec.attention.softmax_scale);
  rules_.softcap = static_cast<float>(spec.attention.softcap);
  rules_.window = block_.window;
  rules_.dropout_heads = spec.attention.all_heads;
  rules_.any_order = spec.attention.any_order;
  rules_.flash_3 = spec.attention.flash_3;
  if (!block_.positions) return;
  if (!tables.rotary.empty()) cos_sin_ = tables.rotary[block_.rotary];
  slopes_H_ = tables.slopes_H, alibi_ = tables.alibi;
  if (slopes_H_.defined()) rules_.alibi_H = slopes_H_.const_data_ptr<float>();
}

ScoreRules SelfAttention::rules_for(const BlockActivations& act) const {
  ScoreRules rules = rules_;
  if (act.dropout.attn_p > 0)
    rules.dropout = dropout_mask(act.dropout, DropoutSite::kScores, attn_.first_head * num_keys(shape_));
  if (const Tensor& number_N = act.documents.number_N; number_N.defined()) {
    check_tensor("model", "documents", number_N, {shape_.batch * num_keys(shape_)}, at::kInt, device_);
    rules.document_BT = number_N.const_data_ptr<int32_t>();
  }
  return rules;
}

Tensor SelfAttention::heads_of(const Tensor& qkv, int64_t first_head, int64_t heads) const {
  return qkv.narrow(1, first_head * attn_.head_dim, heads * attn_.head_dim);
}

void SelfAttention::rotate(Tensor& qkv_NP, int64_t seq, int64_t first_position, bool inverse) const {
  if (!cos_sin_.queries.defined()) return;
  const auto rotate = [&](const Tensor& table, HeadRange heads) {
    rope(qkv_NP, table, seq, first_position, heads, attn_.head_dim, inverse);
  };
  const HeadRange queries = {0, attn_.heads}, keys = {attn_.heads, reuses_ ? 0 : attn_.kv_heads};
  if (!cos_sin_.keys.defined()) return rotate(cos_sin_.queries, {0, queries.count + keys.count});
  rotate(cos_sin_.queries, queries);
  rotate(cos_sin_.keys, keys);
}

void SelfAttention::scale_by_temperature(Tensor& qkv_NP, int64_t seq, int64_t first_position,
                                         const Tensor& position_N) const {
  if (block_.attn_scale == 0) return;
  Tensor q_NE = heads_of(qkv_NP, 0, attn_.heads);
  const TemperatureRule rule = {static_cast<float>(block_.attn_scale), static_cast<float>(block_.floor_scale),
                                block_.counts_from};
  temperature(rule, seq, first_position, position_N, q_NE);
}

void SelfAttention::apply_positions(Tensor& qkv_NP, int64_t seq, int64_t first_position,
                                    const Tensor& position_N) const {
  scale_by_temperature(qkv_NP, seq, first_position, position_N);
  rotate(qkv_NP, seq, first_position, /*inverse=*/false);
}

void SelfAttention::apply_positions_backward(Tensor& d_qkv_NP, bool is_rotated,
                                             const Tensor& position_N) const {
  if (!is_rotated) rotate(d_qkv_NP, shape_.seq, 0, /*inverse=*/true);
  scale_by_temperature(d_qkv_NP, shape_.seq, 0, position_N);
}

void SelfAttention::clamp_and_norm(const Views& p, const Tensor& raw_NP, Views& saved, Tensor& qkv_NP) const {
  if (attn_.clip_qkv > 0)
    clamp(attn_.clip_qkv, raw_NP, qkv_NP);
  else
    qkv_NP.copy_(raw_NP);
  if (norm_.is_used()) norm_.forward(p, qkv_NP, saved);
}

void SelfAttention::clamp_and_norm_backward(const Views& p, Views& saved, Tensor& d_qkv_NP, Views& g,
                                            bool add) const {
  const Tensor& raw_NP = saved[block_saved::kQkvRaw];
  if (norm_.is_used()) {
    // Attention no longer needs qkv: its memory is filled again with the input of the norms.
    Tensor& clamped_NP = saved[block_saved::kQkv];
    if (attn_.clip_qkv > 0)
      clamp(attn_.clip_qkv, raw_NP, clamped_NP);
    else
      clamped_NP.copy_(raw_NP);
    norm_.backward(p, clamped_NP, saved, d_qkv_NP, g, add);
  }
  if (attn_.clip_qkv > 0) clamp_backward(attn_.clip_qkv, raw_NP, d_qkv_NP, d_qkv_NP);
}

SelfAttention::Apart SelfAttention::apart(BlockActivations act) const {
  const Tensor& memory_NC = act.scratch[block_scratch::kPackedQkv];
  const int64_t rows = memory_NC.size(0), q = attn_.width(), kv = memory_NC.size(1) - q;
  const Tensor flat = memory_NC.view(-1);
  return {flat.narrow(0, 0, rows * q).view({rows, q}), flat.narrow(0, rows * q, rows * kv).view({rows, kv})};
}

void SelfAttention::project(const Views& p, const BranchInput& input, BlockActivations act,
                            Tensor& raw_NP) const {
  Tensor& workspace_ND = act.scratch[block_scratch::kAllTokens];
  const Tensor& x_SD = input.x_SD;
  LinearParams layer = qkv(p, act);
  layer.fp8.x = input.fp8();
  if (!reuses_x_) return linear(layer, region_.enter(x_SD, workspace_ND), raw_NP);
  Apart part = apart(act);
  linear(layer, region_.enter(x_SD, workspace_ND), part.q_NE);
  linear(kv(p, act), region_.enter(act.saved[block_saved::kNormedKv], workspace_ND), part.kv);
  heads_of(raw_NP, 0, attn_.heads).copy_(part.q_NE);
  heads_of(raw_NP, attn_.heads, 2 * attn_.kv_heads).copy_(part.kv);
}

void SelfAttention::product_backward(LinearParams p, const Tensor& x_SD, BlockActivations act,
                                     const Tensor& dy_NM, LinearGrads g, bool add, Tensor& dx_SD) const {
  Tensor& share_ND = region_.share(dx_SD, act.scratch[block_scratch::kPartial]);
  linear_input_gradient(p, dy_NM, share_ND);
  region_.leave(share_ND, dx_SD);
  linear_weight_gradient(p, region_.enter(x_SD, act.scratch[block_scratch::kAllTokens]), dy_NM, g, add);
}

void SelfAttention::project_backward(const Views& p, const Tensor& x_SD, BlockActivations act,
                                     const Tensor& d_raw_NP, Views& g, bool add, Tensor& dx_SD) const {
  const LinearGrads g_qkv = {g[at_.qkv_weight], view(g, at_.qkv_bias), g};
  if (!reuses_x_) return product_backward(qkv(p, act), x_SD, act, d_raw_NP, g_qkv, add, dx_SD);
  const Apart part = apart(act);
  part.q_NE.copy_(heads_of(d_raw_NP, 0, attn_.heads));
  part.kv.copy_(heads_of(d_raw_NP, attn_.heads, 2 * attn_.kv_heads));
  product_backward(qkv(p, act), x_SD, act, part.q_NE, g_qkv, add, dx_SD);
  product_backward(kv(p, act), act.saved[block_saved::kNormedKv], act, part.kv,
                   {g[at_.kv_weight], view(g, at_.kv_bias), g}, add, act.scratch[block_scratch::kDNormedKv]);
}

AttentionRows SelfAttention::own_rows(BlockActivations act) const {
  return {heads_of(act.saved[block_saved::kQkv], 0, attn_.heads),
          heads_of(act.kv_saved[block_saved::kQkv], attn_.heads, 2 * attn_.kv_heads)};
}

AttentionRows SelfAttention::rows(BlockActivations act) const {
  const AttentionRows own = own_rows(act);
  if (!region_.context().is_shared()) return own;
  Tensor& all_kv = act.scratch[block_scratch::kAllKv];
  region_.context().gather(own.kv, act.scratch[block_scratch::kKvWorkspace], all_kv);
  return {own.q_NE, all_kv};
}

void SelfAttention::attend(BlockActivations act) const {
  if (region_.context().shape().ring)
    return ring_attention(region_.context(), shape_, rules_for(act), own_rows(act), ring_workspace(act),
                          attention_saved(act), flash_rules(act));
  attention(shape_, rules_for(act), rows(act), attention_saved(act), flash_rules(act));
}

bool SelfAttention::attention_gradient(BlockActivations act, const Tensor& d_attention_NE,
                                       Tensor& d_qkv_NC) const {
  if (region_.context().shape().ring) {
    ring_attention_backward(
        region_.context(), shape_, rules_for(act), own_rows(act), ring_workspace(act), attention_saved(act),
        d_attention_NE,
        {heads_of(d_qkv_NC, 0, attn_.heads), heads_of(d_qkv_NC, attn_.heads, 2 * attn_.kv_heads)},
        flash_rules(act));
    return false;
  }
  const AttentionRows in = rows(act);
  const Tensor d_q_NE = heads_of(d_qkv_NC, 0, attn_.heads),
               d_own_kv = heads_of(d_qkv_NC, attn_.heads, 2 * attn_.kv_heads);
  const bool shared = region_.context().is_shared();
  const AttentionRows gradients = {d_q_NE, shared ? act.scratch[block_scratch::kKvWorkspace] : d_own_kv};
  // Gradients of keys that other blocks or ranks add to are rotated afterwards.
  const bool is_whole = !shared && !reuses_ && !reused_;
  const bool packed = attention_backward(shape_, rules_for(act), in, attention_saved(act), d_attention_NE,
                                         gradients, flash_rules(act), is_whole ? cos_sin_ : RopeTables());
  // Attention no longer needs the keys: their memory is the workspace.
  if (shared) region_.context().scatter(gradients.kv, act.scratch[block_scratch::kAllKv], d_own_kv);
  return packed && is_whole;
}

Tensor SelfAttention::own_gradient(BlockActivations act, Tensor& d_qkv_NC) const {
  if (!reuses_ && !reused_) return d_qkv_NC;
  Tensor& d_kv = act.kv_saved[block_saved::kDKv];
  Tensor own_d_kv = heads_of(d_qkv_NC, attn_.heads, 2 * attn_.kv_heads);
  if (reused_) {
    own_d_kv.add_(d_kv);
    return d_qkv_NC;
  }
  last_to_reuse_ ? d_kv.copy_(own_d_kv) : d_kv.add_(own_d_kv);
  // A product needs contiguous rows.
  Tensor d_q_NE = apart(act).q_NE;
  d_q_NE.copy_(heads_of(d_qkv_NC, 0, attn_.heads));
  return d_q_NE;
}

void SelfAttention::forward(const Views& p, const BranchInput& input, const Tensor& residual_SD,
                            BlockActivations act, Tensor& y_SD, const NextNorm* next) const {
  Tensor& qkv_NP = act.saved[block_saved::kQkv];
  Tensor& raw_NP = attn_.changes_qkv() ? act.saved[block_saved::kQkvRaw] : qkv_NP;
  project(p, input, act, raw_NP);
  if (attn_.changes_qkv()) clamp_and_norm(p, raw_NP, act.saved, qkv_NP);
  apply_positions(qkv_NP, shape_.seq, 0, act.documents.position_N);
  attend(act);
  end_.forward(p, out(p, act), act.saved[block_saved::kAttention], residual_SD, act, y_SD, next);
}

void SelfAttention::backward(const Views& p, const Tensor& x_SD, BlockActivations act, const Tensor& dy_SD,
                             Views& g, bool add, Tensor& dx_SD) const {
  Tensor &d_qkv_NC = act.scratch[block_scratch::kDQkv],
         &d_attention_NE = act.scratch[block_scratch::kDAttention];
  const Tensor& d_added_ND = end_.backward(p, dy_SD, act, g, add);
  linear_input_gradient(out(p, act), d_added_ND, d_attention_NE);
  linear_weight_gradient(out(p, act), act.saved[block_saved::kAttention], d_added_ND,
                         {g[at_.out_weight], view(g, at_.out_bias), g}, add);
  const bool is_rotated = attention_gradient(act, d_attention_NE, d_qkv_NC);
  Tensor d_qkv_NP = own_gradient(act, d_qkv_NC);
  apply_positions_backward(d_qkv_NP, is_rotated, act.documents.position_N);
  if (attn_.changes_qkv()) clamp_and_norm_backward(p, act.saved, d_qkv_NP, g, add);
  project_backward(p, x_SD, act, d_qkv_NP, g, add, dx_SD);
}

// A prompt's own keys are next to its queries, as in training; later tokens find theirs only in the cache.
bool SelfAttention::starts_as_in_training(const AttentionShape& shape, const Tensor& qkv_NP,
                                          int64_t length) const {
  if (length > 0 || shape.seq == 1 || reuses_) return false;
  const AttentionRoute route = attention_route(qkv_NP.device(), qkv_NP.scalar_type(), shape, rules_);
  return route == AttentionRoute::kTiles ||
         (is_flash(route) && (rules_.alibi_H == nullptr || alibi_.defined()));
}

Tensor SelfAttention::prompt_attention(const AttentionShape& shape, const Tensor& qkv_NP) const {
  Tensor out_NE, log_sum_exp_BHT;
  if (qkv_NP.is_cpu()) {
    out_NE = at::empty({qkv_NP.size(0), shape.heads * shape.head_dim}, qkv_NP.options());
    log_sum_exp_BHT = at::empty({shape.batch, shape.heads, shape.seq}, qkv_NP.options().dtype(at::kFloat));
  }
  std::vector<Tensor> state;
  FlashRules flash;
  if (alibi_.defined()) flash.alibi = {alibi_.query_H8, alibi_.key_T8.narrow(0, 0, shape.seq)};
  attention(shape, rules_, packed_rows(shape, qkv_NP), {out_NE, log_sum_exp_BHT, state}, flash);
  return out_NE;
}

Tensor SelfAttention::attend_cached(const CachedRows& rows, Tensor qkv_NP, KvCache& cache) const {
  const int64_t seq = qkv_NP.size(0) / rows.count, heads = attn_.heads, kv_heads = attn_.kv_heads;
  const AttentionShape shape = {rows.count, seq, heads, kv_heads, attn_.head_dim};
  apply_positions(qkv_NP, seq, rows.length, /*position_N=*/{});
  const Tensor keys = cache.keys[static_cast<size_t>(block_.kv_block)].narrow(0, rows.first, rows.count),
               values = cache.values[static_cast<size_t>(block_.kv_block)].narrow(0, rows.first, rows.count),
               heads_BTHd = qkv_NP.view({rows.count, seq, -1, attn_.head_dim});
  if (!reuses_) {
    const OneThread one_thread;
    const auto add_to = [&](const Tensor& side, int64_t first) {
      side.narrow(2, rows.length, seq).copy_(heads_BTHd.narrow(2, first, kv_heads).transpose(1, 2));
    };
    add_to(keys, heads), add_to(values, heads + kv_heads);
  }
  if (cache.attention != nullptr)
    *cache.attention = attention_weights(shape, rules_, heads_BTHd.narrow(2, 0, heads).contiguous(), keys,
                                         rows.length + seq);
  if (starts_as_in_training(shape, qkv_NP, rows.length)) return prompt_attention(shape, qkv_NP);
  // In separate memory: the bits of MKL's products depend on the alignment of operands.
  const Tensor q_BTHd = heads_BTHd.narrow(2, 0, heads).clone(at::MemoryFormat::Contiguous);
  return attention_cached(shape, rules_, q_BTHd, keys, values, rows.length + seq);
}

Tensor SelfAttention::forward_cached(const Views& p, const Tensor& x_ND, const Tensor& normed_kv_ND,
                                     const Tensor& residual_ND, KvCache& cache) const {
  const int64_t num_tokens = x_ND.size(0), heads = attn_.heads, kv_heads = attn_.kv_heads,
                dim = attn_.head_dim;
  const int64_t projected = reuses_ ? heads : heads + 2 * kv_heads;
  Tensor qkv_NP = at::empty({num_tokens, projected * dim}, x_ND.options());
  if (reuses_x_) {
    Tensor q_NE = at::empty({num_tokens, heads * dim}, x_ND.options());
    Tensor kv_rows = at::empty({num_tokens, 2 * kv_heads * dim}, x_ND.options());
    linear(qkv(p), x_ND, q_NE);
    linear(kv(p), normed_kv_ND, kv_rows);
    heads_of(qkv_NP, 0, heads).copy_(q_NE);
    heads_of(qkv_NP, heads, 2 * kv_heads).copy_(kv_rows);
  } else {
    linear(qkv(p), x_ND, qkv_NP);
  }
  if (attn_.clip_qkv > 0) clamp(attn_.clip_qkv, qkv_NP, qkv_NP);
  if (norm_.is_used()) norm_.apply(p, qkv_NP);
  int64_t sequences = 0, done = 0;
  for (const CachedRows& rows : cache.pass) sequences += rows.count;
  // Each part separately: its sequences have another length, and its sums must not depend on the other parts.
  std::vector<Tensor> parts;
  for (const CachedRows& rows : cache.pass) {
    const int64_t count = rows.count * (num_tokens / sequences);
    parts.push_back(attend_cached(rows, qkv_NP.narrow(0, done, count), cache));
    done += count;
  }
  const Tensor out_NE = parts.size() == 1 ? parts.front() : joined(parts);
  Tensor y_ND = at::empty_like(residual_ND);
  end_.apply(p, out(p), out_NE, residual_ND, y_ND);
  return y_ND;
}

}  // namespace tycho
