// ALiBi for an attention that knows products only: columns of queries and keys whose product is the bias.
#pragma once
#include "trainer/base/attention_limits.h"
#include "trainer/kernels/attention/attention_rows.h"
#include "trainer/kernels/kernel_table.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// A score's scale x (query columns · key columns) is slope x (key position), which differs from ALiBi by
/// the same number for all keys of a query: the softmax cannot tell. Exact to fp32, in bf16 columns.
struct AlibiColumns {
  Tensor query_H8;  // bf16 [H, 8]
  Tensor key_T8;    // bf16 [T, 8]
  bool defined() const { return query_H8.defined(); }
};

/// slopes_H: fp32 on the device that the columns shall be on. Throws Error for more than 65,536 positions.
AlibiColumns alibi_columns(const Tensor& slopes_H, float scale, int64_t seq);

/// Rows whose heads, of d + 8, have the columns behind them; values get zeros. bf16 or fp32, of the columns'
/// device.
AttentionRows with_alibi_columns(const AttentionShape& shape, const AlibiColumns& alibi,
                                 const AttentionRows& rows);

}  // namespace tycho
