// ALiBi for implementations of attention without a bias: columns of queries and keys whose product is the
// bias.
#pragma once
#include "trainer/base/attention_limits.h"
#include "trainer/kernels/attention/attention_rows.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// Extra columns for queries and keys. scale x (query columns · key columns) is slope x (key position), which
/// differs from ALiBi by the same number for all keys of a query, so that the softmax is the same. Exact to
/// fp32, in bf16 columns.
struct AlibiColumns {
  Tensor query_H8;  // bf16 [H, 8]
  Tensor key_T8;    // bf16 [T, 8]
  bool defined() const { return query_H8.defined(); }
};

/// Makes the columns on the device of slopes_H (fp32). Throws Error for more than 65,536 positions.
AlibiColumns alibi_columns(const Tensor& slopes_H, float scale, int64_t seq);

/// Returns rows with heads of d + 8: the columns follow each head; values get zeros. Rows are bf16 or fp32,
/// on the columns' device.
AttentionRows with_alibi_columns(const AttentionShape& shape, const AlibiColumns& alibi,
                                 const AttentionRows& rows);

}  // namespace tycho
