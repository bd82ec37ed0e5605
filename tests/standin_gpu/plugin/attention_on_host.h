// Attention written out, as flash attention and cuDNN compute it: for the stand-in's operators.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace standin {

/// Rules of a call.
struct AttentionRules {
  double dropout = 0;
  bool causal = false;
  std::optional<double> scale = {};
  std::optional<int64_t> left = {}, right = {};
  double softcap = 0;
  uint64_t seed = 0;  // of dropout
};

/// Results on the CPU, fp32.
struct HostResults {
  at::Tensor out;          // [rows, heads, d]
  at::Tensor log_sum_exp;  // [batch, heads, queries], or [heads, all queries] of sequences in a row
};
struct HostGradients {
  at::Tensor q, k, v;  // sizes of the inputs; shared keys' added over the heads that share them
};

/// Arguments that both passes take. Tensors are [batch, tokens, heads, d], or [all tokens, heads, d] with the
/// starts of sequences.
class HostAttention {
 public:
  HostAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                const at::Tensor& starts_q, const at::Tensor& starts_k, const AttentionRules& rules);

  size_t num_sequences() const { return spans_.size(); }
  HostResults forward() const;
  HostGradients backward(const at::Tensor& d_out, const at::Tensor& out, const at::Tensor& log_sum_exp) const;

 private:
  /// One sequence of queries and its keys, rows of [.., heads, d].
  struct Span {
    int64_t first_q, num_q, first_k, num_k;
  };
  /// Scores of all pairs, [heads, queries, keys].
  at::Tensor all_scores(const Span& span) const;
  /// -infinity where a query must not look. The last query sees the last key.
  at::Tensor masked(const at::Tensor& scores, const Span& span) const;
  at::Tensor kept(const Span& span) const;
  at::Tensor statistics_part(const at::Tensor& all, size_t index) const;
  at::Tensor rounded(const at::Tensor& x) const;

  at::Tensor query_, key_;  // as given
  at::Tensor q_, k_, v_;    // [rows, heads, d], fp32 on the CPU
  std::vector<Span> spans_;
  AttentionRules rules_;
  double scale_;
  int64_t left_, right_;
};

}  // namespace standin
