// Views, and the positions that two stretches of tokens have.
#include "trainer/kernels/attention/attention_rows.h"

#include <ATen/core/IListRef.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

namespace tycho {

AttentionRows packed_rows(const AttentionShape& s, const Tensor& qkv_NC) {
  const int64_t q = s.heads * s.head_dim, kv = 2 * s.kv_heads * s.head_dim;
  return {qkv_NC.narrow(1, 0, q), qkv_NC.narrow(1, q, kv)};
}

int64_t num_keys(const AttentionShape& s) { return s.keys > 0 ? s.keys : s.seq; }

Tensor query_positions(const AttentionShape& s, const at::Device& device) {
  const auto options = at::TensorOptions().dtype(at::kLong).device(device);
  if (s.keys == 0) return at::arange(s.seq, options);
  const auto of = [&](const TokenStretch& stretch) {
    return at::arange(stretch.first, stretch.first + stretch.count, options);
  };
  return at::cat({of(s.early), of(s.late)});
}

}  // namespace tycho
