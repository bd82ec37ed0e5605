// ATen's flash attention, called explicitly on views of the rows: [B, T, heads, d], or [B * T, heads, d] with
// the starts of documents.
#include "trainer/kernels/attention/flash_attention.h"

#include <ATen/Context.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/zeros.h>

#include <mutex>

#include "trainer/base/attention_limits.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

void check_flash(const char* op, const AttentionShape& s, const ScoreRules& rules, const FlashRules& flash,
                 const AttentionRows& rows) {
  const char* obstacle = flash_obstacle({.bf16 = rows.q_NE.scalar_type() == at::kBFloat16,
                                         .softcap = rules.softcap != 0.0f,
                                         .alibi = rules.alibi_H != nullptr,
                                         .head_dim = s.head_dim,
                                         .seq = s.seq,
                                         .cut = s.keys > 0});
  TYCHO_CHECK(obstacle == nullptr, "[{}] flash attention cannot compute this: {}", op, obstacle);
  TYCHO_CHECK(flash.alibi.defined() == (rules.alibi_H != nullptr),
              "[{}] ALiBi: wanted columns and slopes together, got one without the other", op);
  TYCHO_CHECK(flash.documents.first_token_S1.defined() == (rules.document_BT != nullptr),
              "[{}] documents: wanted their starts and their numbers together, got one without the other",
              op);
}

/// Rows of `heads` heads as flash attention counts them.
Tensor rows_of_heads(const AttentionShape& s, const FlashRules& flash, const Tensor& x, int64_t heads) {
  return flash.documents.first_token_S1.defined() ? x.view({s.batch * s.seq, heads, -1})
                                                  : x.view({s.batch, s.seq, heads, -1});
}

struct Heads {
  Tensor q, k, v;
};

Heads heads_of(const AttentionShape& s, const FlashRules& flash, const AttentionRows& rows) {
  const AttentionRows wide = flash.alibi.defined() ? with_alibi_columns(s, flash.alibi, rows) : rows;
  const Tensor kv = rows_of_heads(s, flash, wide.kv, 2 * s.kv_heads);
  return {rows_of_heads(s, flash, wide.q_NE, s.heads), kv.narrow(-2, 0, s.kv_heads),
          kv.narrow(-2, s.kv_heads, s.kv_heads)};
}

/// [B*T, H*d] with zeros behind every head where keys have the columns of ALiBi.
Tensor widened(const AttentionShape& s, const FlashRules& flash, const Tensor& x_NE) {
  if (!flash.alibi.defined()) return rows_of_heads(s, flash, x_NE, s.heads);
  Tensor wide = at::zeros({s.batch * s.seq, s.heads, s.head_dim + kAlibiColumns}, x_NE.options());
  wide.narrow(2, 0, s.head_dim).copy_(x_NE.view({s.batch * s.seq, s.heads, s.head_dim}));
  return rows_of_heads(s, flash, wide, s.heads);
}

/// Heads [first, first + heads) of rows = x, without the columns of ALiBi.
void narrow_into(const AttentionShape& s, const Tensor& x, const Tensor& rows, int64_t first, int64_t heads) {
  rows.view({s.batch * s.seq, -1, s.head_dim})
      .narrow(1, first, heads)
      .copy_(x.reshape({s.batch * s.seq, heads, -1}).narrow(2, 0, s.head_dim));
}

/// What both passes are told besides tensors.
struct Call {
  Tensor starts;
  int64_t longest;
  std::optional<int64_t> left, right;

  Call(const AttentionShape& s, const ScoreRules& rules, const FlashRules& flash)
      : starts(flash.documents.first_token_S1),
        longest(starts.defined() ? flash.documents.num_longest : s.seq) {
    if (rules.window >= 0) left = rules.window, right = 0;
  }
  std::optional<Tensor> forward_starts() const {
    return starts.defined() ? std::optional<Tensor>(starts) : std::nullopt;
  }
};

void seed(const at::Device& device, uint64_t key) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(key);
}

/// While it lives ATen's kernels add in a fixed order: the backward of flash attention otherwise adds
/// atomically, and the same step gives other bits.
class InFixedOrder {
 public:
  InFixedOrder()
      : before_(at::globalContext().deterministicAlgorithms()),
        warned_before_(at::globalContext().deterministicAlgorithmsWarnOnly()),
        filled_before_(at::globalContext().deterministicFillUninitializedMemory()) {
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
    at::globalContext().setDeterministicFillUninitializedMemory(
        false);  // the mode would write every new tensor first
  }
  ~InFixedOrder() {
    at::globalContext().setDeterministicAlgorithms(before_, warned_before_);
    at::globalContext().setDeterministicFillUninitializedMemory(filled_before_);
  }
  InFixedOrder(const InFixedOrder&) = delete;
  InFixedOrder& operator=(const InFixedOrder&) = delete;

 private:
  bool before_, warned_before_, filled_before_;
};

}  // namespace

std::vector<Tensor> flash_attention(const AttentionShape& s, const ScoreRules& rules, const FlashRules& flash,
                                    const AttentionRows& rows, Tensor& out_NE) {
  check_flash("attention", s, rules, flash, rows);
  const Heads in = heads_of(s, flash, rows);
  const Call call(s, rules, flash);
  // Ranks with other heads of a model draw other numbers.
  if (rules.dropout.p > 0)
    seed(rows.q_NE.device(), rules.dropout.key + static_cast<uint64_t>(rules.dropout.first_row));
  const auto [out, log_sum_exp, random_state, unused, mask] = at::_flash_attention_forward(
      in.q, in.k, in.v, call.forward_starts(), call.forward_starts(), call.longest, call.longest,
      rules.dropout.p, /*is_causal=*/true, /*return_debug_mask=*/false, rules.scale, call.left, call.right);
  narrow_into(s, out, out_NE, 0, s.heads);
  return {log_sum_exp, random_state, unused};
}

void flash_attention_backward(const AttentionShape& s, const ScoreRules& rules, const FlashRules& flash,
                              const AttentionRows& rows, const Tensor& out_NE,
                              const std::vector<Tensor>& state, const Tensor& dout_NE,
                              const AttentionRows& gradients) {
  check_flash("attention_backward", s, rules, flash, rows);
  TYCHO_CHECK(state.size() == 3, "[attention_backward] wanted the state of a forward pass, got {} tensors",
              state.size());
  const Heads in = heads_of(s, flash, rows);
  const Call call(s, rules, flash);
  const InFixedOrder fixed;
  const auto [dq, dk, dv] = at::_flash_attention_backward(
      widened(s, flash, dout_NE), in.q, in.k, in.v, widened(s, flash, out_NE), state[0], call.starts,
      call.starts, call.longest, call.longest, rules.dropout.p, /*is_causal=*/true, state[1], state[2],
      rules.scale, call.left, call.right);
  narrow_into(s, dq, gradients.q_NE, 0, s.heads);
  narrow_into(s, dk, gradients.kv, 0, s.kv_heads);
  narrow_into(s, dv, gradients.kv, s.kv_heads, s.kv_heads);
}

}  // namespace tycho
