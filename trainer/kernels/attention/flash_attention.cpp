// ATen's flash attention, called explicitly on views of the rows: [B, T, heads, d], or [tokens, heads, d]
// with the starts of documents. It has the last query see the last key, so queries of a stretch of tokens are
// given the keys up to its end, in a call of their own.
#include "trainer/kernels/attention/flash_attention.h"

#include <ATen/Context.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <mutex>

#include "trainer/base/attention_limits.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

void check_flash(const char* op, const AttentionShape& s, const ScoreRules& rules, const FlashRules& flash,
                 const AttentionRows& rows) {
  const char* obstacle = flash_obstacle(rows.q_NE.scalar_type(), s, rules);
  TYCHO_CHECK(obstacle == nullptr, "[{}] flash attention cannot compute this: {}", op, obstacle);
  TYCHO_CHECK(flash.alibi.defined() == (rules.alibi_H != nullptr),
              "[{}] ALiBi: wanted columns and slopes together, got one without the other", op);
  const PackedDocuments& documents = flash.documents;
  const bool has_starts = s.keys > 0 ? documents.stretches_B.size() == static_cast<size_t>(s.batch)
                                     : documents.first_token_S1.defined();
  TYCHO_CHECK(has_starts == (rules.document_BT != nullptr),
              "[{}] documents: wanted their starts and their numbers together, got one without the other",
              op);
}

/// What one call computes: queries of some tokens of each row, over keys of others.
struct Call {
  TokenStretch queries, keys;
  int64_t row = -1;  // of one row alone
  Tensor first_query_S1, first_key_S1;
  int64_t most_queries = 0, most_keys = 0;  // of a row, or a document

  /// [B, tokens, heads, d] as the call takes it.
  Tensor of(const Tensor& x_BThd, const TokenStretch& tokens) const {
    if (row >= 0) return x_BThd[row].narrow(0, tokens.first, tokens.count);
    if (first_query_S1.defined()) return x_BThd.flatten(0, 1);
    return x_BThd.narrow(1, tokens.first, tokens.count);
  }
  std::optional<Tensor> starts(const Tensor& first_S1) const {
    return first_S1.defined() ? std::optional<Tensor>(first_S1) : std::nullopt;
  }
};

std::vector<Call> calls_of(const AttentionShape& s, const FlashRules& flash) {
  const TokenStretch all = {0, s.seq};
  const Tensor& starts = flash.documents.first_token_S1;
  if (s.keys == 0) {
    const int64_t most = starts.defined() ? flash.documents.num_longest : s.seq;
    return {{all, all, -1, starts, starts, most, most}};
  }
  std::vector<Call> calls;
  const std::array<TokenStretch, 2> stretches = {s.early, s.late};
  for (size_t i = 0; i < stretches.size(); ++i) {
    const auto [first, count] = stretches[i];
    if (count == 0) continue;
    const TokenStretch queries = {i == 0 ? 0 : s.early.count, count};
    if (flash.documents.stretches_B.empty())
      calls.push_back({queries, {0, first + count}, -1, {}, {}, count, first + count});
    for (size_t row = 0; row < flash.documents.stretches_B.size(); ++row) {
      const StretchDocuments& documents = flash.documents.stretches_B[row][i];
      const TokenStretch keys = {documents.first_token, first + count - documents.first_token};
      calls.push_back({queries, keys, static_cast<int64_t>(row), documents.first_query_S1,
                       documents.first_key_S1, documents.most_queries, documents.most_keys});
    }
  }
  return calls;
}

/// [B, T, heads, d] of queries, [B, S, heads, d] of keys and values; d with the columns of ALiBi.
struct Heads {
  Tensor q, k, v;
};
Heads heads_of(const AttentionShape& s, const AttentionRows& rows) {
  const Tensor kv = rows.kv.view({s.batch, num_keys(s), 2 * s.kv_heads, -1});
  return {rows.q_NE.view({s.batch, s.seq, s.heads, -1}), kv.narrow(2, 0, s.kv_heads),
          kv.narrow(2, s.kv_heads, s.kv_heads)};
}
Heads wide_heads_of(const AttentionShape& s, const FlashRules& flash, const AttentionRows& rows) {
  return heads_of(s, flash.alibi.defined() ? with_alibi_columns(s, flash.alibi, rows) : rows);
}

/// [B, T, H, d] with zeros behind every head where keys have the columns of ALiBi.
Tensor widened(const AttentionShape& s, const FlashRules& flash, const Tensor& x_NE) {
  const Tensor x = x_NE.view({s.batch, s.seq, s.heads, s.head_dim});
  if (!flash.alibi.defined()) return x;
  Tensor wide = at::zeros({s.batch, s.seq, s.heads, s.head_dim + kAlibiColumns}, x_NE.options());
  wide.narrow(3, 0, s.head_dim).copy_(x);
  return wide;
}

/// The keys before a query that it may see.
struct Window {
  std::optional<int64_t> left, right;
  explicit Window(const ScoreRules& rules) {
    if (rules.window >= 0) left = rules.window, right = 0;
  }
};

/// Tensors that a call leaves for its backward.
constexpr size_t kStates = 3;

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

const char* flash_obstacle(at::ScalarType type, const AttentionShape& s, const ScoreRules& rules) {
  return flash_obstacle({.bf16 = type == at::kBFloat16,
                         .softcap = rules.softcap != 0.0f,
                         .alibi = rules.alibi_H != nullptr,
                         .head_dim = s.head_dim,
                         .seq = num_keys(s),
                         .cut = s.keys > 0,
                         .drops = rules.dropout.p > 0});
}

std::vector<Tensor> flash_attention(const AttentionShape& s, const ScoreRules& rules, const FlashRules& flash,
                                    const AttentionRows& rows, Tensor& out_NE) {
  check_flash("attention", s, rules, flash, rows);
  const Heads in = wide_heads_of(s, flash, rows);
  const Tensor out_BTHd = out_NE.view({s.batch, s.seq, s.heads, s.head_dim});
  const Window window(rules);
  // Ranks with other heads of a model draw other numbers.
  if (rules.dropout.p > 0)
    seed(rows.q_NE.device(), rules.dropout.key + static_cast<uint64_t>(rules.dropout.first_row));
  std::vector<Tensor> state;
  for (const Call& call : calls_of(s, flash)) {
    const auto [out, log_sum_exp, random_state, unused, mask] = at::_flash_attention_forward(
        call.of(in.q, call.queries), call.of(in.k, call.keys), call.of(in.v, call.keys),
        call.starts(call.first_query_S1), call.starts(call.first_key_S1), call.most_queries, call.most_keys,
        rules.dropout.p, /*is_causal=*/true, /*return_debug_mask=*/false, rules.scale, window.left,
        window.right);
    call.of(out_BTHd, call.queries).copy_(out.narrow(-1, 0, s.head_dim));
    state.insert(state.end(), {log_sum_exp, random_state, unused});
  }
  return state;
}

void flash_attention_backward(const AttentionShape& s, const ScoreRules& rules, const FlashRules& flash,
                              const AttentionRows& rows, const Tensor& out_NE,
                              const std::vector<Tensor>& state, const Tensor& dout_NE,
                              const AttentionRows& gradients) {
  check_flash("attention_backward", s, rules, flash, rows);
  const std::vector<Call> calls = calls_of(s, flash);
  TYCHO_CHECK(state.size() == kStates * calls.size(),
              "[attention_backward] wanted the state of a forward pass, {} tensors, got {}",
              kStates * calls.size(), state.size());
  const Heads in = wide_heads_of(s, flash, rows), d = heads_of(s, gradients);
  const Tensor out = widened(s, flash, out_NE), dout = widened(s, flash, dout_NE);
  const Window window(rules);
  const InFixedOrder fixed;
  const bool cut = s.keys > 0;  // both stretches see the keys before the early one's end
  if (cut) Tensor(gradients.kv).zero_();
  for (size_t i = 0; i < calls.size(); ++i) {
    const Call& call = calls[i];
    const Tensor* saved = &state[kStates * i];
    const auto [dq, dk, dv] = at::_flash_attention_backward(
        call.of(dout, call.queries), call.of(in.q, call.queries), call.of(in.k, call.keys),
        call.of(in.v, call.keys), call.of(out, call.queries), saved[0], call.first_query_S1,
        call.first_key_S1, call.most_queries, call.most_keys, rules.dropout.p, /*is_causal=*/true, saved[1],
        saved[2], rules.scale, window.left, window.right);
    call.of(d.q, call.queries).copy_(dq.narrow(-1, 0, s.head_dim));
    const auto leave = [&](const Tensor& to, const Tensor& from) {
      const Tensor keys = call.of(to, call.keys), narrow = from.narrow(-1, 0, s.head_dim);
      cut ? keys.add_(narrow) : keys.copy_(narrow);
    };
    leave(d.k, dk), leave(d.v, dv);
  }
}

}  // namespace tycho
