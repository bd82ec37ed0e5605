// Checks of attention, and which of its three implementations a call takes.
#include "trainer/kernels/attention/attention.h"

#include "trainer/base/error.h"
#include "trainer/base/flash_limits.h"
#include "trainer/kernels/attention/product_attention.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/profiler/range.h"

namespace tycho {
namespace {

void check_attention(const char* op, const AttentionShape& s, const ScoreRules& rules, const Tensor& qkv_NC,
                     AttentionSaved saved) {
  TYCHO_CHECK(s.kv_heads > 0 && s.heads % s.kv_heads == 0,
              "[{}] {} query heads cannot evenly share {} key heads", op, s.heads, s.kv_heads);
  TYCHO_CHECK(rules.dropout.p >= 0 && rules.dropout.p < 1,
              "[{}] wanted a probability of dropout in [0, 1), got {}", op, rules.dropout.p);
  const auto dtype = qkv_NC.scalar_type();
  const auto device = qkv_NC.device();
  check_tensor(op, "qkv", qkv_NC, {s.batch * s.seq, (s.heads + 2 * s.kv_heads) * s.head_dim}, dtype, device);
  check_tensor(op, "out", saved.out_NE, {s.batch * s.seq, s.heads * s.head_dim}, dtype, device);
  check_tensor(op, "log_sum_exp", saved.log_sum_exp_BHT, {s.batch, s.heads, s.seq}, at::kFloat, device);
  dtype_of(op, qkv_NC);
}

}  // namespace

AttentionRoute attention_route(const at::Device& device, at::ScalarType type, const AttentionShape& s,
                               const ScoreRules& rules) {
  if (device.is_cpu()) return AttentionRoute::kTiles;
  const FlashCase flash = {.bf16 = type == at::kBFloat16,
                           .softcap = rules.softcap != 0.0f,
                           .alibi = rules.alibi_H != nullptr,
                           .head_dim = s.head_dim,
                           .seq = s.seq};
  return flash_obstacle(flash) == nullptr ? AttentionRoute::kFlash : AttentionRoute::kProducts;
}

void attention(const AttentionShape& s, const ScoreRules& rules, const Tensor& qkv_NC, AttentionSaved saved,
               const FlashRules& flash) {
  const Range range("tycho::attention");
  const char* op = "attention";
  check_attention(op, s, rules, qkv_NC, saved);
  switch (attention_route(qkv_NC.device(), qkv_NC.scalar_type(), s, rules)) {
    case AttentionRoute::kTiles:
      return kernels(qkv_NC).attention(s, rules, dtype_of(op, qkv_NC), qkv_NC.const_data_ptr(),
                                       saved.out_NE.mutable_data_ptr(),
                                       saved.log_sum_exp_BHT.mutable_data_ptr<float>(), nullptr);
    case AttentionRoute::kFlash: saved.state = flash_attention(s, rules, flash, qkv_NC, saved.out_NE); return;
    case AttentionRoute::kProducts:
      return product_attention(s, rules, qkv_NC, saved.out_NE, saved.log_sum_exp_BHT);
  }
}

void attention_backward(const AttentionShape& s, const ScoreRules& rules, const Tensor& qkv_NC,
                        AttentionSaved saved, const Tensor& dout_NE, Tensor& dqkv_NC,
                        const FlashRules& flash) {
  const Range range("tycho::attention_backward");
  const char* op = "attention_backward";
  check_attention(op, s, rules, qkv_NC, saved);
  check_tensor(op, "dout", dout_NE, saved.out_NE.sizes(), qkv_NC.scalar_type(), qkv_NC.device());
  check_tensor(op, "dqkv", dqkv_NC, qkv_NC.sizes(), qkv_NC.scalar_type(), qkv_NC.device());
  switch (attention_route(qkv_NC.device(), qkv_NC.scalar_type(), s, rules)) {
    case AttentionRoute::kTiles:
      return kernels(qkv_NC).attention_backward(
          s, rules, dtype_of(op, qkv_NC), qkv_NC.const_data_ptr(), saved.out_NE.const_data_ptr(),
          saved.log_sum_exp_BHT.const_data_ptr<float>(), dout_NE.const_data_ptr(), dqkv_NC.mutable_data_ptr(),
          nullptr);
    case AttentionRoute::kFlash:
      return flash_attention_backward(s, rules, flash, qkv_NC, saved.out_NE, saved.state, dout_NE, dqkv_NC);
    case AttentionRoute::kProducts:
      return product_attention_backward(s, rules, qkv_NC, saved.out_NE, saved.log_sum_exp_BHT, dout_NE,
                                        dqkv_NC);
  }
}

}  // namespace tycho
