// Flash attention's last query sees its last key, so queries of a span of tokens are given the keys up to the
// span's end, in a separate call; for a part of the keys, each span of queries is paired with each span of
// keys.
#include "trainer/kernels/attention/flash_calls.h"

#include <algorithm>
#include <array>
#include <utility>

#include "trainer/base/error.h"

namespace tycho {
namespace {

/// Sets up a call for queries from token `query` on over earlier keys, from token `key` on: except for the
/// window, all queries see all keys. Returns false if no query sees a key.
bool see_earlier(const ScoreRules& rules, int64_t query, int64_t key, FlashCall& call) {
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
                       std::vector<FlashCall>& calls) {
  if (queries.count == 0 || keys.count == 0 || keys.first >= queries.first + queries.count) return;
  const bool same = keys.first == queries.first && keys.count == queries.count;
  TYCHO_CHECK(same || keys.first + keys.count <= queries.first,
              "[attention] flash attention: expected parts of the keys that are queries or come before them, "
              "got {} keys from {} on for {} queries from {} on",
              keys.count, keys.first, queries.count, queries.first);
  const FlashCall whole = {{row_q, queries.count}, {row_k, keys.count}, -1, {}, {},
                           queries.count,          keys.count};
  const auto add = [&](FlashCall call, int64_t first_key) {
    if (same)
      call.see_window(rules);
    else if (!see_earlier(rules, queries.first, first_key, call))
      return;
    calls.push_back(std::move(call));
  };
  if (documents.spans_B.empty()) return add(whole, keys.first);
  for (size_t row = 0; row < documents.spans_B.size(); ++row) {
    const SpanDocuments& here = documents.spans_B[row][query_span];
    FlashCall call = whole;
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

}  // namespace

std::vector<FlashCall> flash_calls(const AttentionShape& s, const ScoreRules& rules,
                                   const PackedDocuments& documents) {
  const TokenSpan all = {0, s.seq};
  const Tensor& starts = documents.first_token_S1;
  if (s.keys == 0) {
    const int64_t most = starts.defined() ? documents.num_longest : s.seq;
    std::vector<FlashCall> one = {{all, all, -1, starts, starts, most, most}};
    one[0].see_window(rules);
    return one;
  }
  std::vector<FlashCall> calls;
  const std::array<TokenSpan, 2> spans = {s.early, s.late};
  for (size_t i = 0; i < spans.size(); ++i) {
    const auto [first, count] = spans[i];
    if (count == 0) continue;
    const TokenSpan queries = {i == 0 ? 0 : s.early.count, count};
    if (documents.spans_B.empty())
      calls.push_back({queries, {0, first + count}, -1, {}, {}, count, first + count});
    for (size_t row = 0; row < documents.spans_B.size(); ++row) {
      const SpanDocuments& own = documents.spans_B[row][i];
      const TokenSpan keys = {own.first_token, first + count - own.first_token};
      calls.push_back({queries, keys, static_cast<int64_t>(row), own.first_query_S1, own.first_key_S1,
                       own.most_queries, own.most_keys});
    }
  }
  for (FlashCall& call : calls) call.see_window(rules);
  return calls;
}

std::vector<FlashCall> flash_calls_of_part(const AttentionShape& s, const ScoreRules& rules,
                                           const PackedDocuments& documents) {
  std::vector<FlashCall> calls;
  const std::array<TokenSpan, 2> queries = {s.early, s.late}, keys = {s.early_keys, s.late_keys};
  for (size_t q = 0; q < 2; ++q)
    for (size_t k = 0; k < 2; ++k)
      add_calls_of_pair(rules, documents, q, queries[q], q == 0 ? 0 : s.early.count, keys[k],
                        k == 0 ? 0 : s.early_keys.count, calls);
  return calls;
}

FlashHeads flash_heads(const AttentionShape& s, const AttentionRows& rows) {
  const Tensor kv = rows.kv.view({s.batch, num_keys_at_hand(s), 2 * s.kv_heads, -1});
  return {rows.q_NE.view({s.batch, s.seq, s.heads, -1}), kv.narrow(2, 0, s.kv_heads),
          kv.narrow(2, s.kv_heads, s.kv_heads)};
}

}  // namespace tycho
