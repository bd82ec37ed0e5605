// Records what attention launches: for the operators of LibTorch and for FlashAttention-3's.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <cstdint>
#include <optional>

#include "tests/standin_gpu/runtime/record.h"
#include "trainer/kernels/twins/kernel_work.h"

namespace standin {

inline double bytes(const at::Tensor& x) {
  return static_cast<double>(x.numel()) * static_cast<double>(x.itemsize());
}
inline int64_t rounded(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/// Sizes of a call of attention: rows [.., heads, d], or with `by_head` [.., heads, rows, d].
struct AttentionSizes {
  int64_t sequences, queries, keys, heads, kv_heads, d;
  double flops;  // of the two products forward, for the pairs of queries and keys that are looked at

  AttentionSizes(const at::Tensor& q, const at::Tensor& k, bool by_head,
                 const std::optional<at::Tensor>& starts, bool causal, std::optional<int64_t> window)
      : sequences(starts.has_value() && starts->defined() ? starts->numel() - 1 : q.size(0)),
        queries(by_head ? q.size(2) : q.size(-3)),
        keys(by_head ? k.size(2) : k.size(-3)),
        heads(q.size(by_head ? 1 : -2)),
        kv_heads(k.size(by_head ? 1 : -2)),
        d(q.size(-1)) {
    // Rows of several documents lie one behind the other, each as long as the average.
    const int64_t together = q.dim() == 3 ? sequences : 1, t = queries / together, s = keys / together;
    const tycho::TokenSpan asking = {causal ? s - t : s, t}, asked = {0, s};
    flops = tycho::kAttentionFlops * tycho::seen_pairs(asking, asked, window.value_or(-1)) *
            static_cast<double>(sequences * heads * d);
  }
};

inline at::Tensor statistics_of(const at::Tensor& q, const AttentionSizes& s) {
  const auto options = q.options().dtype(at::kFloat);
  return q.dim() == 3 ? at::empty({s.heads, q.size(0)}, options)
                      : at::empty({q.size(0), s.heads, s.queries}, options);
}

inline void record_forward(const char* name, const at::Tensor& q, const at::Tensor& k, const at::Tensor& out,
                           const at::Tensor& sums, const AttentionSizes& s) {
  standin_record(fmt::format("{} forward, width {}, {} tokens", name, s.d, s.keys).c_str(),
                 bytes(q) + 2 * bytes(k), bytes(out) + bytes(sums), s.flops);
}
inline void record_backward(const char* name, const at::Tensor& q, const at::Tensor& k,
                            const AttentionSizes& s) {
  standin_record(
      fmt::format("{} backward, width {}, {} tokens, {} heads", name, s.d, s.keys, s.sequences * s.heads)
          .c_str(),
      2 * bytes(q) + 2 * bytes(k), bytes(q) + 2 * bytes(k),
      tycho::kAttentionBackwardFlops / tycho::kAttentionFlops * s.flops);
}

}  // namespace standin
