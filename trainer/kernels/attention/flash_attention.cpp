// ATen's flash attention, called explicitly on views of the rows, and FlashAttention-3 in its place where the
// rules ask for it and it can: both take the same calls (flash_calls.h).
#include "trainer/kernels/attention/flash_attention.h"

#include <ATen/Context.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/zeros.h>

#include <mutex>
#include <optional>

#include "trainer/base/error.h"
#include "trainer/kernels/attention/attention_case.h"
#include "trainer/kernels/attention/flash_attention_3.h"
#include "trainer/kernels/attention/flash_calls.h"
#include "trainer/kernels/attention/pack_gradients.h"
#include "trainer/kernels/attention/partial_sums.h"

namespace tycho {
namespace {

void check_flash(const char* op, const AttentionShape& s, const ScoreRules& rules, const FlashRules& flash,
                 const AttentionRows& rows) {
  const at::ScalarType type = rows.q_NE.scalar_type();
  const char* obstacle = uses_flash_3(type, s, rules) ? nullptr : flash_obstacle(type, s, rules);
  TYCHO_CHECK(obstacle == nullptr, "[{}] flash attention cannot compute this: {}", op, obstacle);
  TYCHO_CHECK(flash.alibi.defined() == (rules.alibi_H != nullptr),
              "[{}] ALiBi: expected columns and slopes together, got one without the other", op);
  const PackedDocuments& documents = flash.documents;
  const bool has_starts = s.keys > 0 ? documents.spans_B.size() == static_cast<size_t>(s.batch)
                                     : documents.first_token_S1.defined();
  TYCHO_CHECK(has_starts == (rules.document_BT != nullptr),
              "[{}] documents: expected their starts and their numbers together, got one without the other",
              op);
}

/// Returns [B, T, H, d], with zeros after every head where keys have the columns of ALiBi.
Tensor widened(const AttentionShape& s, const FlashRules& flash, const Tensor& x_NE) {
  const Tensor x = x_NE.view({s.batch, s.seq, s.heads, s.head_dim});
  if (!flash.alibi.defined()) return x;
  Tensor wide = at::zeros({s.batch, s.seq, s.heads, s.head_dim + kAlibiColumns}, x_NE.options());
  wide.narrow(3, 0, s.head_dim).copy_(x);
  return wide;
}

FlashHeads wide_heads_of(const AttentionShape& s, const FlashRules& flash, const AttentionRows& rows) {
  return flash_heads(s, flash.alibi.defined() ? with_alibi_columns(s, flash.alibi, rows) : rows);
}

/// Number of tensors that a call keeps for its backward.
constexpr size_t kStates = 3;

void seed(const at::Device& device, uint64_t key) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(key);
}

/// Makes ATen's kernels add in a fixed order while it lives. Otherwise the backward of flash attention adds
/// atomically, and repeating a step gives other bits.
class InFixedOrder {
 public:
  InFixedOrder()
      : before_(at::globalContext().deterministicAlgorithms()),
        warned_before_(at::globalContext().deterministicAlgorithmsWarnOnly()),
        filled_before_(at::globalContext().deterministicFillUninitializedMemory()) {
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
    at::globalContext().setDeterministicFillUninitializedMemory(
        false);  // otherwise the mode would first write every new tensor
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

/// Returns true if ATen's mode decides the order; FlashAttention-3 has an argument for it.
bool needs_mode(const AttentionShape& s, const ScoreRules& rules, const AttentionRows& rows) {
  return !rules.any_order && !uses_flash_3(rows.q_NE.scalar_type(), s, rules);
}

FlashResult forward_of(const FlashCall& call, const AttentionShape& s, const ScoreRules& rules,
                       const FlashHeads& in) {
  if (uses_flash_3(in.q.scalar_type(), s, rules)) return flash_3_forward(call, rules, in);
  auto [out, log_sum_exp, random_state, unused, mask] = at::_flash_attention_forward(
      call.of(in.q, call.queries), call.of(in.k, call.keys), call.of(in.v, call.keys),
      call.starts(call.first_query_S1), call.starts(call.first_key_S1), call.most_queries, call.most_keys,
      rules.dropout.p, call.causal, /*return_debug_mask=*/false, rules.scale, call.left, call.right);
  return {out, log_sum_exp, random_state, unused};
}

/// Returns the gradients of a call's queries, keys and values, without the columns of ALiBi. FlashAttention-3
/// writes them to `into`, views like `in`, if that is given.
FlashHeads backward_of(const FlashCall& call, const AttentionShape& s, const ScoreRules& rules,
                       const FlashHeads& in, const Tensor& out, const Tensor& dout, const Tensor& log_sum_exp,
                       const Tensor& random_state, const Tensor& unused, const FlashHeads& into = {}) {
  const auto narrow = [&](const FlashHeads& x) {
    return FlashHeads{x.q.narrow(-1, 0, s.head_dim), x.k.narrow(-1, 0, s.head_dim),
                      x.v.narrow(-1, 0, s.head_dim)};
  };
  if (uses_flash_3(in.q.scalar_type(), s, rules))
    return narrow(flash_3_backward(call, rules, in, out, dout, log_sum_exp, into));
  const auto [dq, dk, dv] = at::_flash_attention_backward(
      call.of(dout, call.queries), call.of(in.q, call.queries), call.of(in.k, call.keys),
      call.of(in.v, call.keys), call.of(out, call.queries), log_sum_exp, call.first_query_S1,
      call.first_key_S1, call.most_queries, call.most_keys, rules.dropout.p, call.causal, random_state,
      unused, rules.scale, call.left, call.right);
  return narrow({dq, dk, dv});
}

}  // namespace

const char* flash_obstacle(at::ScalarType type, const AttentionShape& s, const ScoreRules& rules) {
  return flash_obstacle(attention_case(type, s, rules));
}

bool uses_flash_3(at::ScalarType type, const AttentionShape& s, const ScoreRules& rules) {
  return rules.flash_3 && flash_3_obstacle(attention_case(type, s, rules)) == nullptr;
}

std::vector<Tensor> flash_attention(const AttentionShape& s, const ScoreRules& rules, const FlashRules& flash,
                                    const AttentionRows& rows, Tensor& out_NE) {
  check_flash("attention", s, rules, flash, rows);
  const FlashHeads in = wide_heads_of(s, flash, rows);
  // Ranks with other heads of a model must draw other numbers.
  if (rules.dropout.p > 0)
    seed(rows.q_NE.device(), rules.dropout.key + static_cast<uint64_t>(rules.dropout.first_row));
  std::vector<Tensor> state;
  const std::vector<FlashCall> calls = flash_calls(s, rules, flash.documents);
  TYCHO_CHECK(out_NE.defined() || s.keys == 0,
              "[attention] expected memory for the output of {} spans of queries, got none", calls.size());
  for (const FlashCall& call : calls) {
    const FlashResult one = forward_of(call, s, rules, in);
    const Tensor out = one.out.narrow(-1, 0, s.head_dim);
    if (out_NE.defined())
      call.of(out_NE.view({s.batch, s.seq, s.heads, s.head_dim}), call.queries).copy_(out);
    else
      out_NE = out.reshape({s.batch * s.seq, s.heads * s.head_dim});
    state.insert(state.end(), {one.log_sum_exp, one.random_state, one.unused});
  }
  return state;
}

void flash_attention_part(const AttentionShape& s, const ScoreRules& rules, const FlashRules& flash,
                          const AttentionRows& rows, Tensor& sum_NE, Tensor& log_sum_exp_BHT,
                          std::vector<Tensor>& state) {
  check_flash("attention", s, rules, flash, rows);
  const FlashHeads in = wide_heads_of(s, flash, rows);
  const Tensor sum_BTHd = sum_NE.view({s.batch, s.seq, s.heads, s.head_dim});
  const auto by_row = [](const Tensor& x) { return x.transpose(-2, -1).unsqueeze(-1); };  // [.., T, H, 1]
  for (const FlashCall& call : flash_calls_of_part(s, rules, flash.documents)) {
    const FlashResult one = forward_of(call, s, rules, in);
    add_part(one.out.narrow(-1, 0, s.head_dim), by_row(one.log_sum_exp), call.of(sum_BTHd, call.queries),
             by_row(call.statistics(log_sum_exp_BHT)));
    state = {one.random_state, one.unused};  // without dropout, the state of one call serves all
  }
}

void flash_attention_part_backward(const AttentionShape& s, const ScoreRules& rules, const FlashRules& flash,
                                   const AttentionRows& rows, const Tensor& out_NE,
                                   const Tensor& log_sum_exp_BHT, const std::vector<Tensor>& state,
                                   const Tensor& dout_NE, const AttentionRows& gradients) {
  check_flash("attention_backward", s, rules, flash, rows);
  const FlashHeads in = wide_heads_of(s, flash, rows), d = flash_heads(s, gradients);
  const Tensor out = widened(s, flash, out_NE), dout = widened(s, flash, dout_NE);
  std::optional<InFixedOrder> fixed;
  if (needs_mode(s, rules, rows)) fixed.emplace();
  Tensor(gradients.kv).zero_();
  for (const FlashCall& call : flash_calls_of_part(s, rules, flash.documents)) {
    TYCHO_CHECK(state.size() == kStates - 1,
                "[attention_backward] expected the state of a forward pass, {} tensors, got {}", kStates - 1,
                state.size());
    const FlashHeads one = backward_of(call, s, rules, in, out, dout,
                                       call.statistics(log_sum_exp_BHT).contiguous(), state[0], state[1]);
    call.of(d.q, call.queries).add_(one.q);
    call.of(d.k, call.keys).add_(one.k), call.of(d.v, call.keys).add_(one.v);
  }
}

bool flash_attention_backward(const AttentionShape& s, const ScoreRules& rules, const FlashRules& flash,
                              const AttentionRows& rows, const Tensor& out_NE,
                              const std::vector<Tensor>& state, const Tensor& dout_NE,
                              const AttentionRows& gradients, const RopeTables& rotation) {
  check_flash("attention_backward", s, rules, flash, rows);
  const std::vector<FlashCall> calls = flash_calls(s, rules, flash.documents);
  TYCHO_CHECK(state.size() == kStates * calls.size(),
              "[attention_backward] expected the state of a forward pass, {} tensors, got {}",
              kStates * calls.size(), state.size());
  const FlashHeads in = wide_heads_of(s, flash, rows), d = flash_heads(s, gradients);
  const Tensor out = widened(s, flash, out_NE), dout = widened(s, flash, dout_NE);
  std::optional<InFixedOrder> fixed;
  if (needs_mode(s, rules, rows)) fixed.emplace();
  const auto gradients_of = [&](size_t i, const FlashHeads& into = {}) {
    const Tensor* saved = &state[kStates * i];
    return backward_of(calls[i], s, rules, in, out, dout, saved[0], saved[1], saved[2], into);
  };
  if (s.keys == 0) {
    if (uses_flash_3(rows.q_NE.scalar_type(), s, rules) && !flash.alibi.defined()) {
      gradients_of(0, d);
      return false;
    }
    const FlashHeads all = gradients_of(0);
    pack_gradients(s, all.q, all.k, all.v, rotation, gradients);
    return true;
  }
  Tensor(gradients.kv).zero_();  // both spans see the keys before the early one's end
  for (size_t i = 0; i < calls.size(); ++i) {
    const FlashHeads one = gradients_of(i);
    calls[i].of(d.q, calls[i].queries).copy_(one.q);
    calls[i].of(d.k, calls[i].keys).add_(one.k), calls[i].of(d.v, calls[i].keys).add_(one.v);
  }
  return false;
}

}  // namespace tycho
