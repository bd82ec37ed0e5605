// Writes ALiBi as columns: both factors are split into parts that bf16 represents exactly, and the product
// adds the parts in fp32.
#include "trainer/kernels/attention/alibi_columns.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"

namespace tycho {

AlibiColumns alibi_columns(const Tensor& slopes_H, float scale, int64_t seq) {
  constexpr int64_t kLow = 256;
  TYCHO_CHECK(seq <= kMostAlibiPositions, "[alibi] expected at most {} positions on a GPU, got {}",
              kMostAlibiPositions, seq);
  const int64_t heads = slopes_H.numel();
  check_tensor("alibi", "slopes", slopes_H, {heads}, at::kFloat, slopes_H.device());
  const auto bf16 = slopes_H.options().dtype(at::kBFloat16);
  AlibiColumns columns = {at::zeros({heads, kAlibiColumns}, bf16), at::zeros({seq, kAlibiColumns}, bf16)};
  // Positions: a multiple of 256 and the remainder, both of 8 bits.
  const Tensor position_T = at::arange(seq, slopes_H.options().dtype(at::kLong));
  const Tensor low_T = position_T.remainder(kLow), high_T = position_T - low_T;
  // Slopes: three parts of 8 bits hold the 24 of fp32.
  Tensor rest_H = slopes_H.to(at::kDouble) / static_cast<double>(scale);
  for (int64_t part = 0; part < 3; ++part) {
    const Tensor rounded_H = rest_H.to(at::kBFloat16);
    rest_H = rest_H - rounded_H.to(at::kDouble);
    columns.query_H8.narrow(1, 2 * part, 2).copy_(rounded_H.unsqueeze(1).expand({heads, 2}));
    columns.key_T8.select(1, 2 * part).copy_(high_T);
    columns.key_T8.select(1, 2 * part + 1).copy_(low_T);
  }
  return columns;
}

AttentionRows with_alibi_columns(const AttentionShape& s, const AlibiColumns& alibi,
                                 const AttentionRows& rows) {
  const int64_t d = s.head_dim;
  const auto device = rows.q_NE.device();
  check_tensor("alibi", "query columns", alibi.query_H8, {s.heads, kAlibiColumns}, at::kBFloat16, device);
  const int64_t keys = num_keys_at_hand(s);
  check_tensor("alibi", "key columns", alibi.key_T8, {num_keys(s), kAlibiColumns}, at::kBFloat16, device);
  const auto widened = [&](const Tensor& x, int64_t tokens, int64_t heads) {
    Tensor wide = at::empty({s.batch, tokens, heads, d + kAlibiColumns}, x.options());
    wide.narrow(3, 0, d).copy_(x.view({s.batch, tokens, heads, d}));
    return wide;
  };
  const Tensor q = widened(rows.q_NE, s.seq, s.heads), kv = widened(rows.kv, keys, 2 * s.kv_heads);
  q.narrow(3, d, kAlibiColumns).copy_(alibi.query_H8.expand({s.batch, s.seq, s.heads, kAlibiColumns}));
  const Tensor columns = kv.narrow(3, d, kAlibiColumns);
  const Tensor key_8 = s.is_part() ? alibi.key_T8.index_select(0, key_positions(s, device)) : alibi.key_T8;
  columns.narrow(2, 0, s.kv_heads)
      .copy_(key_8.unsqueeze(1).expand({s.batch, keys, s.kv_heads, kAlibiColumns}));
  columns.narrow(2, s.kv_heads, s.kv_heads).zero_();
  return {q.view({s.batch * s.seq, -1}), kv.view({s.batch * keys, -1})};
}

}  // namespace tycho
