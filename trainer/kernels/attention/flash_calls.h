// The calls of flash attention that one attention takes, and the views of the rows that they are given:
// [B, T, heads, d], or [tokens, heads, d] with the starts of documents.
#pragma once
#include <optional>
#include <vector>

#include "trainer/kernels/attention/attention_rows.h"
#include "trainer/kernels/attention/packed_documents.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// One call of flash attention, of version 2 or 3: queries of some tokens of each row, over keys of others.
struct FlashCall {
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

/// Returns the calls for queries over all keys.
std::vector<FlashCall> flash_calls(const AttentionShape& shape, const ScoreRules& rules,
                                   const PackedDocuments& documents);
/// Returns the calls for a part of the keys. Every query of a call sees a key. Throws Error where keys are
/// neither queries nor before these.
std::vector<FlashCall> flash_calls_of_part(const AttentionShape& shape, const ScoreRules& rules,
                                           const PackedDocuments& documents);

/// Views [B, T, heads, d] of queries and [B, S, heads, d] of keys and values; d includes the columns of
/// ALiBi.
struct FlashHeads {
  Tensor q, k, v;
};
FlashHeads flash_heads(const AttentionShape& shape, const AttentionRows& rows);

/// Results of a call: its output, and the state for its backward. FlashAttention-3 has no random state.
struct FlashResult {
  Tensor out, log_sum_exp, random_state, unused;
};

}  // namespace tycho
