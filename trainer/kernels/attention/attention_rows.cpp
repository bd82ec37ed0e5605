// Views of rows, and the positions of two spans of tokens.
#include "trainer/kernels/attention/attention_rows.h"

#include <ATen/ops/arange.h>

#include "trainer/kernels/tensor.h"

namespace tycho {
namespace {

Tensor positions(const TokenSpan& first, const TokenSpan& second, const at::Device& device) {
  const auto of = [&](const TokenSpan& span) {
    return at::arange(span.first, span.first + span.count,
                      at::TensorOptions().dtype(at::kLong).device(device));
  };
  return second.count > 0 ? joined({of(first), of(second)}) : of(first);
}

}  // namespace

AttentionRows packed_rows(const AttentionShape& s, const Tensor& qkv_NC) {
  const int64_t q = s.heads * s.head_dim, kv = 2 * s.kv_heads * s.head_dim;
  return {qkv_NC.narrow(1, 0, q), qkv_NC.narrow(1, q, kv)};
}

int64_t num_keys(const AttentionShape& s) { return s.keys > 0 ? s.keys : s.seq; }

int64_t num_keys_at_hand(const AttentionShape& s) {
  return s.is_part() ? s.early_keys.count + s.late_keys.count : num_keys(s);
}

Tensor query_positions(const AttentionShape& s, const at::Device& device) {
  return s.keys > 0 ? positions(s.early, s.late, device) : positions({0, s.seq}, {}, device);
}

Tensor key_positions(const AttentionShape& s, const at::Device& device) {
  return s.is_part() ? positions(s.early_keys, s.late_keys, device) : positions({0, num_keys(s)}, {}, device);
}

}  // namespace tycho
