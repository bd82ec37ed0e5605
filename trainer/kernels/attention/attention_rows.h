// Rows of the queries, keys and values of attention: together in packed rows, or separate.
#pragma once
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// B sequences with T queries each (AttentionShape), and S keys, or those of a part. The rows of both need
/// not be contiguous.
struct AttentionRows {
  Tensor q_NE;  // [B*T, H*d]
  Tensor kv;    // [B*S, 2 K*d]: heads of k, then of v
};
/// Returns views of rows that hold heads of q, then k, then v: qkv_NC is [B*T, (H + 2K) * d], T = S.
AttentionRows packed_rows(const AttentionShape& shape, const Tensor& qkv_NC);

/// Return the number of keys S, and the number of keys present: fewer where the shape is of a part.
int64_t num_keys(const AttentionShape& shape);
int64_t num_keys_at_hand(const AttentionShape& shape);
/// Returns the positions of a sequence's queries among its keys: int64 [T], made on the device.
Tensor query_positions(const AttentionShape& shape, const at::Device& device = at::kCPU);
/// Returns the positions of the keys that are present: int64 [num_keys_at_hand], made on the device.
Tensor key_positions(const AttentionShape& shape, const at::Device& device = at::kCPU);

}  // namespace tycho
