// Attention through ATen's flash kernels, called explicitly on views of the packed rows.
#include "trainer/kernels/attention.h"

#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>

#include <cmath>

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/kernels/matmul.h"

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

/// ATen's CPU kernel wants as many key heads as query heads: query head h reads key head h / group.
Tensor repeat_heads(const AttentionShape& s, const Tensor& x_BKTd) {
  if (s.kv_heads == s.heads) return x_BKTd;
  const int64_t group = s.heads / s.kv_heads;
  return x_BKTd.unsqueeze(2)
      .expand({s.batch, s.kv_heads, group, s.seq, s.head_dim})
      .reshape({s.batch, s.heads, s.seq, s.head_dim});
}

/// Writes into a view of dqkv; gradients of a group of query heads add up to that of their key head.
void write_heads(const AttentionShape& s, const Tensor& from_BHTd, Tensor to) {
  const int64_t heads = to.size(1);
  to.copy_(from_BHTd.size(1) == heads ? from_BHTd : from_BHTd.unflatten(1, {heads, s.heads / heads}).sum(2));
}

/// ATen's bf16 attention is ten times slower than its fp32 one on a CPU without bf16 units.
Tensor for_cpu(const Tensor& x) {
  return x.scalar_type() == at::kBFloat16 && !bf16_is_native(x.device()) ? x.to(at::kFloat) : x;
}

void check_shape(const char* op, const AttentionShape& s, const Tensor& packed_NC) {
  TYCHO_CHECK(s.kv_heads > 0 && s.heads % s.kv_heads == 0,
              "[{}] {} query heads cannot share {} key heads evenly", op, s.heads, s.kv_heads);
  check_tensor(op, "qkv", packed_NC, {s.batch * s.seq, (s.heads + 2 * s.kv_heads) * s.head_dim},
               packed_NC.scalar_type(), packed_NC.device());
  TYCHO_CHECK(packed_NC.is_cpu() || packed_NC.scalar_type() == at::kBFloat16,
              "[{}] attention on a GPU is computed in bf16, got {}: set the run's precision to bf16", op,
              c10::toString(packed_NC.scalar_type()));
}

Tensor rows_from(const AttentionShape& s, const Tensor& out_BHTd) {
  return out_BHTd.transpose(1, 2).reshape({s.batch * s.seq, s.heads * s.head_dim});
}

}  // namespace

AttentionSaved attention(const AttentionShape& s, const Tensor& qkv_NC) {
  check_shape("attention", s, qkv_NC);
  if (qkv_NC.is_cpu()) {
    const Heads in = heads_of(s, for_cpu(qkv_NC));
    auto [out, log_sum_exp] = at::_scaled_dot_product_flash_attention_for_cpu(
        in.q_BHTd, repeat_heads(s, in.k_BKTd), repeat_heads(s, in.v_BKTd), 0.0, true);
    return {rows_from(s, out).to(qkv_NC.scalar_type()), {log_sum_exp}};
  }
  const Heads in = heads_of(s, qkv_NC);
  auto [out, log_sum_exp, starts_q, starts_k, max_q, max_k, seed, offset, mask] =
      at::_scaled_dot_product_flash_attention(in.q_BHTd, in.k_BKTd, in.v_BKTd, 0.0, true, false);
  return {rows_from(s, out), {log_sum_exp, starts_q, starts_k, seed, offset}};
}

void attention_backward(const AttentionShape& s, const Tensor& qkv_NC, const AttentionSaved& saved,
                        const Tensor& dout_NE, Tensor& dqkv_NC) {
  const char* op = "attention_backward";
  check_shape(op, s, qkv_NC);
  check_tensor(op, "dout", dout_NE, saved.out_NE.sizes(), qkv_NC.scalar_type(), qkv_NC.device());
  check_tensor(op, "dqkv", dqkv_NC, qkv_NC.sizes(), qkv_NC.scalar_type(), qkv_NC.device());
  const auto heads_first = [&](const Tensor& rows) {
    return rows.view({s.batch, s.seq, s.heads, s.head_dim}).transpose(1, 2);
  };
  std::tuple<Tensor, Tensor, Tensor> gradients;
  if (qkv_NC.is_cpu()) {
    const Heads in = heads_of(s, for_cpu(qkv_NC));
    gradients = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        heads_first(for_cpu(dout_NE)), in.q_BHTd, repeat_heads(s, in.k_BKTd), repeat_heads(s, in.v_BKTd),
        heads_first(for_cpu(saved.out_NE)), saved.stats[0], 0.0, true);
  } else {
    const Heads in = heads_of(s, qkv_NC);
    gradients = at::_scaled_dot_product_flash_attention_backward(
        heads_first(dout_NE), in.q_BHTd, in.k_BKTd, in.v_BKTd, heads_first(saved.out_NE), saved.stats[0],
        saved.stats[1], saved.stats[2], s.seq, s.seq, 0.0, true, saved.stats[3], saved.stats[4]);
  }
  const Heads to = heads_of(s, dqkv_NC);
  write_heads(s, std::get<0>(gradients), to.q_BHTd);
  write_heads(s, std::get<1>(gradients), to.k_BKTd);
  write_heads(s, std::get<2>(gradients), to.v_BKTd);
}

Tensor attention_cached(const AttentionShape& s, const Tensor& q_BTHd, const Tensor& key_cache,
                        const Tensor& value_cache, int64_t num_keys) {
  const char* op = "attention_cached";
  const auto device = q_BTHd.device();
  check_tensor(op, "q", q_BTHd, {s.batch, s.seq, s.heads, s.head_dim}, q_BTHd.scalar_type(), device);
  TYCHO_CHECK(s.kv_heads > 0 && s.heads % s.kv_heads == 0,
              "[{}] {} query heads cannot share {} key heads evenly", op, s.heads, s.kv_heads);
  TYCHO_CHECK(key_cache.dim() == 4 && num_keys >= s.seq && num_keys <= key_cache.size(1),
              "[{}] wanted {} <= keys <= positions of the cache, got {} keys and a cache of {}", op, s.seq,
              num_keys, key_cache.dim() == 4 ? key_cache.size(1) : 0);
  const int64_t group = s.heads / s.kv_heads;
  // Few queries over many keys: plain products are as fast as a flash kernel, and fp32 costs nothing on a
  // CPU.
  const auto compute = q_BTHd.is_cpu() ? at::kFloat : q_BTHd.scalar_type();
  const auto heads_first = [&](const Tensor& cache) {
    return cache.narrow(1, 0, num_keys).transpose(1, 2).to(compute);
  };
  const Tensor q =
      q_BTHd.view({s.batch, s.seq, s.kv_heads, group, s.head_dim}).permute({0, 2, 3, 1, 4}).to(compute);
  Tensor scores = at::matmul(q.reshape({s.batch, s.kv_heads, group * s.seq, s.head_dim}),
                             heads_first(key_cache).transpose(2, 3));
  scores = scores.to(at::kFloat).mul_(1.0 / std::sqrt(static_cast<double>(s.head_dim)));
  if (s.seq > 1) {
    const Tensor key = at::arange(num_keys, device), last = at::arange(num_keys - s.seq, num_keys, device);
    scores = scores.view({s.batch, s.kv_heads, group, s.seq, num_keys})
                 .masked_fill(key.unsqueeze(0) > last.unsqueeze(1), -INFINITY)
                 .view({s.batch, s.kv_heads, group * s.seq, num_keys});
  }
  const Tensor out = at::matmul(scores.softmax(-1).to(compute), heads_first(value_cache));
  return out.view({s.batch, s.kv_heads, group, s.seq, s.head_dim})
      .permute({0, 3, 1, 2, 4})
      .to(q_BTHd.scalar_type())
      .reshape({s.batch * s.seq, s.heads * s.head_dim});
}

}  // namespace tycho
