// Checks the arguments of attention, and chooses one of its implementations.
#include "trainer/kernels/attention/attention.h"

#include "trainer/base/error.h"
#include "trainer/kernels/attention/cudnn_attention.h"
#include "trainer/kernels/attention/product_attention.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/profiler/range.h"

namespace tycho {
namespace {

void check_spans(const char* op, const AttentionShape& s) {
  const auto ends = [](const TokenSpan& span) { return span.first + span.count; };
  const auto in_order = [&](const TokenSpan& early, const TokenSpan& late) {
    return early.first >= 0 && late.count >= 0 &&
           (late.count == 0 ? ends(early) <= s.keys : ends(early) <= late.first && ends(late) <= s.keys);
  };
  TYCHO_CHECK(!s.is_part() || in_order(s.early_keys, s.late_keys),
              "[{}] expected some of {} keys as two spans, one after the other, got {} from {} on and {} "
              "from {} on",
              op, s.keys, s.early_keys.count, s.early_keys.first, s.late_keys.count, s.late_keys.first);
  if (s.keys == 0) return;
  TYCHO_CHECK(s.early.first >= 0 && s.early.count >= 0 && s.late.count >= 0 &&
                  ends(s.early) <= s.late.first && ends(s.late) <= s.keys &&
                  s.early.count + s.late.count == s.seq,
              "[{}] expected {} queries as two spans of {} tokens, one after the other, got {} from {} on "
              "and {} from {} on",
              op, s.seq, s.keys, s.early.count, s.early.first, s.late.count, s.late.first);
}

/// Elements between rows, for kernels.
struct Steps {
  int64_t q, kv;
};
Steps check_rows(const char* op, const AttentionShape& s, const AttentionRows& rows, at::ScalarType dtype,
                 const at::Device& device) {
  return {row_step(op, "q", rows.q_NE, {s.batch * s.seq, s.heads * s.head_dim}, dtype, device),
          row_step(op, "kv", rows.kv, {s.batch * num_keys_at_hand(s), 2 * s.kv_heads * s.head_dim}, dtype,
                   device)};
}

AttentionInputs check_attention(const char* op, const AttentionShape& s, const ScoreRules& rules,
                                const AttentionRows& rows, AttentionSaved saved, at::ScalarType out) {
  TYCHO_CHECK(s.kv_heads > 0 && s.heads % s.kv_heads == 0,
              "[{}] {} query heads cannot evenly share {} key heads", op, s.heads, s.kv_heads);
  TYCHO_CHECK(rules.dropout.p >= 0 && rules.dropout.p < 1,
              "[{}] expected a probability of dropout in [0, 1), got {}", op, rules.dropout.p);
  check_spans(op, s);
  const auto device = rows.q_NE.device();
  const Steps steps = check_rows(op, s, rows, rows.q_NE.scalar_type(), device);
  const AttentionRoute route = attention_route(device, rows.q_NE.scalar_type(), s, rules);
  const bool fused = !s.is_part() && (is_flash(route) || route == AttentionRoute::kCudnn);
  if (!fused || saved.out_NE.defined())
    check_tensor(op, "out", saved.out_NE, {s.batch * s.seq, s.heads * s.head_dim}, out, device);
  if (!fused)
    check_tensor(op, "log_sum_exp", saved.log_sum_exp_BHT, {s.batch, s.heads, s.seq}, at::kFloat, device);
  return {rows.q_NE.const_data_ptr(), steps.q, rows.kv.const_data_ptr(), steps.kv};
}

}  // namespace

AttentionRoute attention_route(const at::Device& device, at::ScalarType type, const AttentionShape& s,
                               const ScoreRules& rules) {
  if (device.is_cpu()) return AttentionRoute::kTiles;
  if (uses_flash_3(type, s, rules)) return AttentionRoute::kFlash3;
  if (rules.any_order && cudnn_obstacle(type, s, rules) == nullptr) return AttentionRoute::kCudnn;
  return flash_obstacle(type, s, rules) == nullptr ? AttentionRoute::kFlash : AttentionRoute::kProducts;
}

void attention(const AttentionShape& s, const ScoreRules& rules, const AttentionRows& rows,
               AttentionSaved saved, const FlashRules& flash) {
  const Range range("tycho::attention");
  const char* op = "attention";
  const AttentionInputs in =
      check_attention(op, s, rules, rows, saved, s.is_part() ? at::kFloat : rows.q_NE.scalar_type());
  switch (attention_route(rows.q_NE.device(), rows.q_NE.scalar_type(), s, rules)) {
    case AttentionRoute::kTiles:
      return kernels(rows.q_NE).attention(s, rules, dtype_of(op, rows.q_NE), in,
                                          saved.out_NE.mutable_data_ptr(),
                                          saved.log_sum_exp_BHT.mutable_data_ptr<float>(), nullptr);
    case AttentionRoute::kFlash:
    case AttentionRoute::kFlash3:
      if (s.is_part())
        return flash_attention_part(s, rules, flash, rows, saved.out_NE, saved.log_sum_exp_BHT, saved.state);
      saved.state = flash_attention(s, rules, flash, rows, saved.out_NE);
      return;
    case AttentionRoute::kCudnn: saved.state = cudnn_attention(s, rules, rows, saved.out_NE); return;
    case AttentionRoute::kProducts:
      return product_attention(s, rules, rows, saved.out_NE, saved.log_sum_exp_BHT);
  }
}

bool attention_backward(const AttentionShape& s, const ScoreRules& rules, const AttentionRows& rows,
                        AttentionSaved saved, const Tensor& dout_NE, const AttentionRows& gradients,
                        const FlashRules& flash, const RopeTables& rotation) {
  const Range range("tycho::attention_backward");
  const char* op = "attention_backward";
  const auto dtype = rows.q_NE.scalar_type();
  const AttentionInputs in = check_attention(op, s, rules, rows, saved, dtype);
  const auto device = rows.q_NE.device();
  check_tensor(op, "out", saved.out_NE, {s.batch * s.seq, s.heads * s.head_dim}, dtype, device);
  check_tensor(op, "dout", dout_NE, saved.out_NE.sizes(), dtype, device);
  const Steps steps = check_rows(op, s, gradients, s.is_part() ? at::kFloat : dtype, device);
  switch (attention_route(device, dtype, s, rules)) {
    case AttentionRoute::kTiles:
      kernels(rows.q_NE).attention_backward(
          s, rules, dtype_of(op, rows.q_NE), in, saved.out_NE.const_data_ptr(),
          saved.log_sum_exp_BHT.const_data_ptr<float>(), dout_NE.const_data_ptr(),
          {gradients.q_NE.mutable_data_ptr(), steps.q, gradients.kv.mutable_data_ptr(), steps.kv}, nullptr);
      return false;
    case AttentionRoute::kFlash:
    case AttentionRoute::kFlash3:
      if (!s.is_part())
        return flash_attention_backward(s, rules, flash, rows, saved.out_NE, saved.state, dout_NE, gradients,
                                        rotation);
      flash_attention_part_backward(s, rules, flash, rows, saved.out_NE, saved.log_sum_exp_BHT, saved.state,
                                    dout_NE, gradients);
      return false;
    case AttentionRoute::kCudnn:
      cudnn_attention_backward(s, rules, rows, saved.out_NE, saved.state, dout_NE, gradients, rotation);
      return true;
    case AttentionRoute::kProducts:
      product_attention_backward(s, rules, rows, saved.out_NE, saved.log_sum_exp_BHT, dout_NE, gradients);
      return false;
  }
  return false;
}

}  // namespace tycho
