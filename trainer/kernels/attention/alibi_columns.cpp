// ALiBi in columns: both factors are cut into parts that bf16 holds exactly, and the product adds the parts
// up in fp32.
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
  TYCHO_CHECK(seq <= kMostAlibiPositions, "[alibi] wanted at most {} positions on a GPU, got {}",
              kMostAlibiPositions, seq);
  const int64_t heads = slopes_H.numel();
  check_tensor("alibi", "slopes", slopes_H, {heads}, at::kFloat, slopes_H.device());
  const auto bf16 = slopes_H.options().dtype(at::kBFloat16);
  AlibiColumns columns = {at::zeros({heads, kAlibiColumns}, bf16), at::zeros({seq, kAlibiColumns}, bf16)};
  // Positions: a multiple of 256 and what is left of it, both of 8 bits.
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

Tensor with_alibi_columns(const AttentionShape& s, const AlibiColumns& alibi, const Tensor& qkv_NC) {
  const int64_t heads = s.heads + 2 * s.kv_heads, d = s.head_dim;
  check_tensor("alibi", "query columns", alibi.query_H8, {s.heads, kAlibiColumns}, at::kBFloat16,
               qkv_NC.device());
  check_tensor("alibi", "key columns", alibi.key_T8, {s.seq, kAlibiColumns}, at::kBFloat16, qkv_NC.device());
  Tensor packed = at::empty({s.batch, s.seq, heads, d + kAlibiColumns}, qkv_NC.options());
  packed.narrow(3, 0, d).copy_(qkv_NC.view({s.batch, s.seq, heads, d}));
  Tensor columns = packed.narrow(3, d, kAlibiColumns);
  const auto of = [&](int64_t first, int64_t count) { return columns.narrow(2, first, count); };
  of(0, s.heads).copy_(alibi.query_H8.expand({s.batch, s.seq, s.heads, kAlibiColumns}));
  of(s.heads, s.kv_heads)
      .copy_(alibi.key_T8.unsqueeze(1).expand({s.batch, s.seq, s.kv_heads, kAlibiColumns}));
  of(s.heads + s.kv_heads, s.kv_heads).zero_();
  return packed.view({s.batch * s.seq, heads, d + kAlibiColumns});
}

}  // namespace tycho
