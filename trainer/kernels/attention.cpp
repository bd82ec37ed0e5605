// Attention: our tiles on the CPU, ATen's flash attention on a GPU, called explicitly on views of the packed
// rows.
#include "trainer/kernels/attention.h"

#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>

#include <cmath>

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"

namespace tycho {
namespace {

struct Heads {
  Tensor q_BHTd, k_BKTd, v_BKTd;  // views of packed rows
};

Heads heads_of(const AttentionShape& s, const Tensor& packed_NC) {
  const Tensor all = packed_NC.view({s.batch, s.seq, s.heads + 2 * s.kv_heads, s.head_dim}).transpose(1, 2);
  return {all.narrow(1, 0, s.heads), all.narrow(1, s.heads, s.kv_heads),
          all.narrow(1, s.heads + s.kv_heads, s.kv_heads)};
}

Tensor heads_first(const AttentionShape& s, const Tensor& rows_NE) {
  return rows_NE.view({s.batch, s.seq, s.heads, s.head_dim}).transpose(1, 2);
}

void check_groups(const char* op, const AttentionShape& s) {
  TYCHO_CHECK(s.kv_heads > 0 && s.heads % s.kv_heads == 0,
              "[{}] {} query heads cannot share {} key heads evenly", op, s.heads, s.kv_heads);
}

void check_attention(const char* op, const AttentionShape& s, const ScoreRules& rules, const Tensor& qkv_NC,
                     AttentionSaved saved) {
  check_groups(op, s);
  TYCHO_CHECK(rules.dropout.p >= 0 && rules.dropout.p < 1,
              "[{}] wanted a probability of dropout in [0, 1), got {}", op, rules.dropout.p);
  const auto dtype = qkv_NC.scalar_type();
  const auto device = qkv_NC.device();
  check_tensor(op, "qkv", qkv_NC, {s.batch * s.seq, (s.heads + 2 * s.kv_heads) * s.head_dim}, dtype, device);
  check_tensor(op, "out", saved.out_NE, {s.batch * s.seq, s.heads * s.head_dim}, dtype, device);
  if (qkv_NC.is_cpu()) {
    dtype_of(op, qkv_NC);
    check_tensor(op, "log_sum_exp", saved.log_sum_exp_BHT, {s.batch, s.heads, s.seq}, at::kFloat, device);
    return;
  }
  TYCHO_CHECK(dtype == at::kBFloat16,
              "[{}] attention on a GPU is computed in bf16, got {}: set the run's precision to bf16", op,
              c10::toString(dtype));
  TYCHO_CHECK(rules.softcap == 0.0f && rules.window < 0 && !rules.alibi_H && !rules.document_BT &&
                  rules.dropout.p == 0.0,
              "[{}] soft caps, windows, ALiBi, document masks and dropout of attention run on CPUs only so "
              "far, the tensors are on {}",
              op, device.str());
}

}  // namespace

void attention(const AttentionShape& s, const ScoreRules& rules, const Tensor& qkv_NC, AttentionSaved saved) {
  check_attention("attention", s, rules, qkv_NC, saved);
  if (qkv_NC.is_cpu())
    return kernels(qkv_NC).attention(s, rules, dtype_of("attention", qkv_NC), qkv_NC.const_data_ptr(),
                                     saved.out_NE.mutable_data_ptr(),
                                     saved.log_sum_exp_BHT.mutable_data_ptr<float>(), stream_of(qkv_NC));
  const Heads in = heads_of(s, qkv_NC);
  auto [out, log_sum_exp, starts_q, starts_k, max_q, max_k, seed, offset, mask] =
      at::_scaled_dot_product_flash_attention(in.q_BHTd, in.k_BKTd, in.v_BKTd, 0.0, true, false, rules.scale);
  heads_first(s, saved.out_NE).copy_(out);
  saved.state = {log_sum_exp, starts_q, starts_k, seed, offset};
}

void attention_backward(const AttentionShape& s, const ScoreRules& rules, const Tensor& qkv_NC,
                        AttentionSaved saved, const Tensor& dout_NE, Tensor& dqkv_NC) {
  const char* op = "attention_backward";
  check_attention(op, s, rules, qkv_NC, saved);
  check_tensor(op, "dout", dout_NE, saved.out_NE.sizes(), qkv_NC.scalar_type(), qkv_NC.device());
  check_tensor(op, "dqkv", dqkv_NC, qkv_NC.sizes(), qkv_NC.scalar_type(), qkv_NC.device());
  if (qkv_NC.is_cpu())
    return kernels(qkv_NC).attention_backward(s, rules, dtype_of(op, qkv_NC), qkv_NC.const_data_ptr(),
                                              saved.out_NE.const_data_ptr(),
                                              saved.log_sum_exp_BHT.const_data_ptr<float>(),
                                              dout_NE.const_data_ptr(), dqkv_NC.mutable_data_ptr(), nullptr);
  const Heads in = heads_of(s, qkv_NC), to = heads_of(s, dqkv_NC);
  const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_backward(
      heads_first(s, dout_NE), in.q_BHTd, in.k_BKTd, in.v_BKTd, heads_first(s, saved.out_NE), saved.state[0],
      saved.state[1], saved.state[2], s.seq, s.seq, 0.0, true, saved.state[3], saved.state[4], rules.scale);
  to.q_BHTd.copy_(dq);
  to.k_BKTd.copy_(dk);
  to.v_BKTd.copy_(dv);
}

namespace {

/// Scores [B, K, G, T, S] of products already scaled: cap, ALiBi, and -infinity where a query must not look.
Tensor ruled_scores(const AttentionShape& s, const ScoreRules& rules, Tensor scores, int64_t num_keys) {
  if (rules.softcap != 0.0f) scores = (scores / rules.softcap).tanh_().mul_(rules.softcap);
  if (s.seq == 1 && !rules.alibi_H && rules.window < 0) return scores;
  const auto options = scores.options().dtype(at::kLong);
  const Tensor key = at::arange(num_keys, options),
               query = at::arange(num_keys - s.seq, num_keys, options).unsqueeze(1), behind = key - query;
  if (rules.alibi_H) {
    const Tensor slopes = at::from_blob(const_cast<float*>(rules.alibi_H),
                                        {s.kv_heads, s.heads / s.kv_heads, 1, 1}, scores.options());
    scores = scores + slopes * behind.to(at::kFloat);
  }
  if (s.seq > 1) scores = scores.masked_fill(behind > 0, -INFINITY);
  if (rules.window >= 0) scores = scores.masked_fill(behind < -rules.window, -INFINITY);
  return scores;
}

}  // namespace

Tensor attention_cached(const AttentionShape& s, const ScoreRules& rules, const Tensor& q_BTHd,
                        const Tensor& key_cache, const Tensor& value_cache, int64_t num_keys) {
  const char* op = "attention_cached";
  check_tensor(op, "q", q_BTHd, {s.batch, s.seq, s.heads, s.head_dim}, q_BTHd.scalar_type(), q_BTHd.device());
  check_groups(op, s);
  TYCHO_CHECK(key_cache.dim() == 4 && num_keys >= s.seq && num_keys <= key_cache.size(2),
              "[{}] wanted {} <= keys <= positions of the cache, got {} keys and a cache of {}", op, s.seq,
              num_keys, key_cache.dim() == 4 ? key_cache.size(2) : 0);
  const int64_t group = s.heads / s.kv_heads;
  // Few queries over many keys: plain products over the cache as it lies are as fast as a flash kernel.
  const auto compute = key_cache.scalar_type();
  const Tensor keys = key_cache.narrow(2, 0, num_keys), values = value_cache.narrow(2, 0, num_keys);
  const Tensor q =
      q_BTHd.view({s.batch, s.seq, s.kv_heads, group, s.head_dim}).permute({0, 2, 3, 1, 4}).to(compute);
  Tensor scores =
      at::matmul(q.reshape({s.batch, s.kv_heads, group * s.seq, s.head_dim}), keys.transpose(2, 3));
  scores = scores.to(at::kFloat).mul_(rules.scale).view({s.batch, s.kv_heads, group, s.seq, num_keys});
  scores = ruled_scores(s, rules, scores, num_keys).view({s.batch, s.kv_heads, group * s.seq, num_keys});
  const Tensor out = at::matmul(scores.softmax(-1).to(compute), values);
  return out.view({s.batch, s.kv_heads, group, s.seq, s.head_dim})
      .permute({0, 3, 1, 2, 4})
      .to(q_BTHd.scalar_type())
      .reshape({s.batch * s.seq, s.heads * s.head_dim});
}

}  // namespace tycho
