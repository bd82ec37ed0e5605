// Checks of packing gradients.
#include "trainer/kernels/attention/pack_gradients.h"

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/profiler/range.h"

namespace tycho {
namespace {

/// Returns x as [B*T, heads, d] whose heads are contiguous.
Tensor by_token(const AttentionShape& s, const char* name, const Tensor& x, int64_t heads,
                const AttentionRows& to) {
  const int64_t tokens = s.batch * s.seq;
  TYCHO_CHECK((x.dim() == 3 || x.dim() == 4) && x.numel() == tokens * heads * s.head_dim &&
                  x.size(-2) == heads && x.size(-1) == s.head_dim &&
                  x.scalar_type() == to.q_NE.scalar_type() && x.device() == to.q_NE.device(),
              "[pack_gradients] {}: expected {} tokens with {} heads of {}, of the dtype and device of the "
              "rows, got {} dims and {} elements",
              name, tokens, heads, s.head_dim, x.dim(), x.numel());
  const Tensor rows = x.reshape({tokens, heads, s.head_dim});
  return rows.stride(2) == 1 ? rows : rows.contiguous();
}

HeadRows head_rows(const Tensor& x_NHd) { return {x_NHd.const_data_ptr(), x_NHd.stride(0), x_NHd.stride(1)}; }

const float* checked_table(const AttentionShape& s, const Tensor& table, int64_t pairs, const Tensor& rows) {
  TYCHO_CHECK(table.dim() == 3 && table.size(0) >= s.seq && pairs > 0 && 2 * pairs <= s.head_dim,
              "[pack_gradients] expected a table of rope_table for {} positions and heads of {}, got {} dims "
              "and {} pairs",
              s.seq, s.head_dim, table.dim(), pairs);
  check_tensor("pack_gradients", "rotation", table, {table.size(0), 2, pairs}, at::kFloat, rows.device());
  return table.const_data_ptr<float>();
}

Rotations rotations_of(const AttentionShape& s, const RopeTables& tables, const Tensor& rows) {
  if (!tables.queries.defined()) return {};
  const int64_t pairs = tables.queries.size(-1);
  const Tensor& keys = tables.keys.defined() ? tables.keys : tables.queries;
  return {checked_table(s, tables.queries, pairs, rows), checked_table(s, keys, pairs, rows), 2 * pairs};
}

}  // namespace

void pack_gradients(const AttentionShape& s, const Tensor& dq, const Tensor& dk, const Tensor& dv,
                    const RopeTables& rotation, const AttentionRows& gradients) {
  const Range range("tycho::pack_gradients");
  const char* op = "pack_gradients";
  TYCHO_CHECK(s.keys == 0, "[{}] expected whole sequences, got {} of {} tokens", op, s.seq, s.keys);
  const Tensor &to_q = gradients.q_NE, &to_kv = gradients.kv;
  const int64_t tokens = s.batch * s.seq;
  const AttentionGradients to = {
      to_q.mutable_data_ptr(),
      row_step(op, "q", to_q, {tokens, s.heads * s.head_dim}, to_q.scalar_type(), to_q.device()),
      to_kv.mutable_data_ptr(),
      row_step(op, "kv", to_kv, {tokens, 2 * s.kv_heads * s.head_dim}, to_q.scalar_type(), to_q.device())};
  const Tensor q = by_token(s, "dq", dq, s.heads, gradients),
               k = by_token(s, "dk", dk, s.kv_heads, gradients),
               v = by_token(s, "dv", dv, s.kv_heads, gradients);
  kernels(to_q).pack_gradients(s, dtype_of(op, to_q), head_rows(q), head_rows(k), head_rows(v),
                               rotations_of(s, rotation, to_q), to, stream_of(to_q));
}

}  // namespace tycho
