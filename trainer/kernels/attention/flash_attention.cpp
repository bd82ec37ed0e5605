// ATen's flash attention, called explicitly on views of the rows: [B, T, heads, d], or [tokens, heads, d]
// with the starts of documents. Its last query sees its last key, so queries of a span of tokens are given
// the keys up to the span's end, in a separate call; for a part of the keys, each span of queries is paired
// with each span of keys.
#include "trainer/kernels/attention/flash_attention.h"

#include <ATen/Context.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <mutex>
#include <optional>

#include "trainer/base/attention_limits.h"
#include "trainer/base/error.h"
#include "trainer/kernels/attention/pack_gradients.h"
#include "trainer/kernels/attention/partial_sums.h"

namespace tycho {
namespace {

void check_flash(const char* op, const AttentionShape& s, const ScoreRules& rules, const FlashRules& flash,
                 const AttentionRows& rows) {
  const char* obstacle = flash_obstacle(rows.q_NE.scalar_type(), s, rules);
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

/// One call of flash attention: queries of some tokens of each row, over keys of others.
struct Call {
  TokenSpan queries, keys;
  int64_t row = -1;  // computes this row only; -1: all rows
  Tensor first_query_S1, first_key_S1;
  int64_t most_queries = 0, most_keys = 0;  // most of a row, or of a document
  bool causal = true;
  std::optional<int64_t> left, right;  // number of keys before and after its own that a query sees

  /// Returns the tokens of x as the call takes them: [B, tokens, heads, d].
  Tensor of(const Tensor& x_BThd, const TokenSpan& tokens) const {
    if (row >= 0 && !first_query_S1.defined())
      return x_BThd.narrow(0, row, 1).narrow(1, tokens.first, tokens.count);
    if (row >= 0) return x_BThd[row].narrow(0, tokens.first, tokens.count);
    if (first_query_S1.defined()) return x_BThd.flatten(0, 1);
    return x_BThd.narrow(1, tokens.first, tokens.count);
  }
  /// Returns the log-sum-exp of the call's queries, a part of [B, H, T], as the call returns and takes it.
  Tensor statistics(const Tensor& x_BHT) const {
    const Tensor of_queries = x_BHT.narrow(2, queries.first, queries.count);
    if (row < 0) return of_queries;
    return first_query_S1.defined() ? of_queries[row] : of_queries.narrow(0, row, 1);
  }
  std::optional<Tensor> starts(const Tensor& first_S1) const {
    return first_S1.defined() ? std::optional<Tensor>(first_S1) : std::nullopt;
  }
  void see_window(const ScoreRules& rules) {
    if (rules.window >= 0) left = rules.window, right = 0;
  }
};

std::vector<Call> calls_of(const AttentionShape& s, const ScoreRules& rules, const FlashRules& flash) {
  const TokenSpan all = {0, s.seq};
  const Tensor& starts = flash.documents.first_token_S1;
  if (s.keys == 0) {
    const int64_t most = starts.defined() ? flash.documents.num_longest : s.seq;
    std::vector<Call> one = {{all, all, -1, starts, starts, most, most}};
    one[0].see_window(rules);
    return one;
  }
  std::vector<Call> calls;
  const std::array<TokenSpan, 2> spans = {s.early, s.late};
  for (size_t i = 0; i < spans.size(); ++i) {
    const auto [first, count] = spans[i];
    if (count == 0) continue;
    const TokenSpan queries = {i == 0 ? 0 : s.early.count, count};
    if (flash.documents.spans_B.empty())
      calls.push_back({queries, {0, first + count}, -1, {}, {}, count, first + count});
    for (size_t row = 0; row < flash.documents.spans_B.size(); ++row) {
      const SpanDocuments& documents = flash.documents.spans_B[row][i];
      const TokenSpan keys = {documents.first_token, first + count - documents.first_token};
      calls.push_back({queries, keys, static_cast<int64_t>(row), documents.first_query_S1,
                       documents.first_key_S1, documents.most_queries, documents.most_keys});
    }
  }
  for (Call& call : calls) call.see_window(rules);
  return calls;
}

/// Sets up a call for queries from token `query` on over earlier keys, from token `key` on: except for the
/// window, all queries see all keys. Returns false if no query sees a key.
bool see_earlier(const ScoreRules& rules, int64_t query, int64_t key, Call& call) {
  call.causal = false;
  int64_t& queries = call.queries.count;
  if (rules.window >= 0) {
    // First key that the i-th query sees, minus i.
    const int64_t first = query - rules.window - key;
    queries = std::min(queries, call.keys.count - first);  // later queries see none of these keys
    if (queries > 0 && first + queries > 1) call.left = call.keys.count - queries - first;
  }
  call.most_queries = queries, call.most_keys = call.keys.count;
  return queries > 0 && call.keys.count > 0;
}

/// Adds the calls for a span of queries, whose rows begin at `row_q`, over a span of keys, whose rows begin
/// at `row_k`.
void add_calls_of_pair(const ScoreRules& rules, const PackedDocuments& documents, size_t query_span,
                       const TokenSpan& queries, int64_t row_q, const TokenSpan& keys, int64_t row_k,
                       std::vector<Call>& calls) {
  if (queries.count == 0 || keys.count == 0 || keys.first >= queries.first + queries.count) return;
  const bool same = keys.first == queries.first && keys.count == queries.count;
  TYCHO_CHECK(same || keys.first + keys.count <= queries.first,
              "[attention] flash attention: expected parts of the keys that are queries or come before them, "
              "got {} keys from {} on for {} queries from {} on",
              keys.count, keys.first, queries.count, queries.first);
  const Call whole = {{row_q, queries.count}, {row_k, keys.count}, -1, {}, {}, queries.count, keys.count};
  const auto add = [&](Call call, int64_t first_key) {
    if (same)
      call.see_window(rules);
    else if (!see_earlier(rules, queries.first, first_key, call))
      return;
    calls.push_back(std::move(call));
  };
  if (documents.spans_B.empty()) return add(whole, keys.first);
  for (size_t row = 0; row < documents.spans_B.size(); ++row) {
    const SpanDocuments& here = documents.spans_B[row][query_span];
    Call call = whole;
    call.row = static_cast<int64_t>(row);
    int64_t first_key = keys.first;
    if (same) {
      call.first_query_S1 = call.first_key_S1 = here.first_query_S1;
      call.most_queries = call.most_keys = here.most_queries;
    } else {
      // Only the first document of the queries can have begun among earlier keys.
      first_key = std::max(first_key, here.first_token);
      call.queries.count = here.first_queries;
      call.keys = {row_k + first_key - keys.first, keys.first + keys.count - first_key};
      if (call.keys.count <= 0) continue;
    }
    add(std::move(call), first_key);
  }
}

std::vector<Call> calls_of_part(const AttentionShape& s, const ScoreRules& rules, const FlashRules& flash) {
  std::vector<Call> calls;
  const std::array<TokenSpan, 2> queries = {s.early, s.late}, keys = {s.early_keys, s.late_keys};
  for (size_t q = 0; q < 2; ++q)
    for (size_t k = 0; k < 2; ++k)
      add_calls_of_pair(rules, flash.documents, q, queries[q], q == 0 ? 0 : s.early.count, keys[k],
                        k == 0 ? 0 : s.early_keys.count, calls);
  return calls;
}

/// Views [B, T, heads, d] of queries and [B, S, heads, d] of keys and values; d includes the columns of
/// ALiBi.
struct Heads {
  Tensor q, k, v;
};
Heads heads_of(const AttentionShape& s, const AttentionRows& rows) {
  const Tensor kv = rows.kv.view({s.batch, num_keys_at_hand(s), 2 * s.kv_heads, -1});
  return {rows.q_NE.view({s.batch, s.seq, s.heads, -1}), kv.narrow(2, 0, s.kv_heads),
          kv.narrow(2, s.kv_heads, s.kv_heads)};
}
Heads wide_heads_of(const AttentionShape& s, const FlashRules& flash, const AttentionRows& rows) {
  return heads_of(s, flash.alibi.defined() ? with_alibi_columns(s, flash.alibi, rows) : rows);
}

/// Returns [B, T, H, d], with zeros after every head where keys have the columns of ALiBi.
Tensor widened(const AttentionShape& s, const FlashRules& flash, const Tensor& x_NE) {
  const Tensor x = x_NE.view({s.batch, s.seq, s.heads, s.head_dim});
  if (!flash.alibi.defined()) return x;
  Tensor wide = at::zeros({s.batch, s.seq, s.heads, s.head_dim + kAlibiColumns}, x_NE.options());
  wide.narrow(3, 0, s.head_dim).copy_(x);
  return wide;
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

/// Results of a call: its output, and the state for its backward.
struct Result {
  Tensor out, log_sum_exp, random_state, unused;
};
Result forward_of(const Call& call, const ScoreRules& rules, const Heads& in) {
  auto [out, log_sum_exp, random_state, unused, mask] = at::_flash_attention_forward(
      call.of(in.q, call.queries), call.of(in.k, call.keys), call.of(in.v, call.keys),
      call.starts(call.first_query_S1), call.starts(call.first_key_S1), call.most_queries, call.most_keys,
      rules.dropout.p, call.causal, /*return_debug_mask=*/false, rules.scale, call.left, call.right);
  return {out, log_sum_exp, random_state, unused};
}

struct Gradients {
  Tensor q, k, v;
};
Gradients backward_of(const Call& call, const AttentionShape& s, const ScoreRules& rules, const Heads& in,
                      const Tensor& out, const Tensor& dout, const Tensor& log_sum_exp,
                      const Tensor& random_state, const Tensor& unused) {
  const auto [dq, dk, dv] = at::_flash_attention_backward(
      call.of(dout, call.queries), call.of(in.q, call.queries), call.of(in.k, call.keys),
      call.of(in.v, call.keys), call.of(out, call.queries), log_sum_exp, call.first_query_S1,
      call.first_key_S1, call.most_queries, call.most_keys, rules.dropout.p, call.causal, random_state,
      unused, rules.scale, call.left, call.right);
  const auto narrow = [&](const Tensor& x) { return x.narrow(-1, 0, s.head_dim); };
  return {narrow(dq), narrow(dk), narrow(dv)};
}

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
  // Ranks with other heads of a model must draw other numbers.
  if (rules.dropout.p > 0)
    seed(rows.q_NE.device(), rules.dropout.key + static_cast<uint64_t>(rules.dropout.first_row));
  std::vector<Tensor> state;
  const std::vector<Call> calls = calls_of(s, rules, flash);
  TYCHO_CHECK(out_NE.defined() || s.keys == 0,
              "[attention] expected memory for the output of {} spans of queries, got none", calls.size());
  for (const Call& call : calls) {
    const Result one = forward_of(call, rules, in);
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
  const Heads in = wide_heads_of(s, flash, rows);
  const Tensor sum_BTHd = sum_NE.view({s.batch, s.seq, s.heads, s.head_dim});
  const auto by_row = [](const Tensor& x) { return x.transpose(-2, -1).unsqueeze(-1); };  // [.., T, H, 1]
  for (const Call& call : calls_of_part(s, rules, flash)) {
    const Result one = forward_of(call, rules, in);
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
  const Heads in = wide_heads_of(s, flash, rows), d = heads_of(s, gradients);
  const Tensor out = widened(s, flash, out_NE), dout = widened(s, flash, dout_NE);
  std::optional<InFixedOrder> fixed;
  if (!rules.any_order) fixed.emplace();
  Tensor(gradients.kv).zero_();
  for (const Call& call : calls_of_part(s, rules, flash)) {
    TYCHO_CHECK(state.size() == kStates - 1,
                "[attention_backward] expected the state of a forward pass, {} tensors, got {}", kStates - 1,
                state.size());
    const Gradients one = backward_of(call, s, rules, in, out, dout,
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
  const std::vector<Call> calls = calls_of(s, rules, flash);
  TYCHO_CHECK(state.size() == kStates * calls.size(),
              "[attention_backward] expected the state of a forward pass, {} tensors, got {}",
              kStates * calls.size(), state.size());
  const Heads in = wide_heads_of(s, flash, rows), d = heads_of(s, gradients);
  const Tensor out = widened(s, flash, out_NE), dout = widened(s, flash, dout_NE);
  std::optional<InFixedOrder> fixed;
  if (!rules.any_order) fixed.emplace();
  const auto gradients_of = [&](size_t i) {
    const Tensor* saved = &state[kStates * i];
    return backward_of(calls[i], s, rules, in, out, dout, saved[0], saved[1], saved[2]);
  };
  if (s.keys == 0) {
    const Gradients all = gradients_of(0);
    pack_gradients(s, all.q, all.k, all.v, rotation, gradients);
    return true;
  }
  Tensor(gradients.kv).zero_();  // both spans see the keys before the early one's end
  for (size_t i = 0; i < calls.size(); ++i) {
    const Gradients one = gradients_of(i);
    calls[i].of(d.q, calls[i].queries).copy_(one.q);
    calls[i].of(d.k, calls[i].keys).add_(one.k), calls[i].of(d.v, calls[i].keys).add_(one.v);
  }
  return false;
}

}  // namespace tycho
