// Checks of the tables of tokens and positions.
#include "trainer/kernels/embedding.h"

#include <ATen/ops/empty.h>

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/profiler/range.h"

namespace tycho {
namespace {

void check_tokens(const char* op, const Tensor& tokens_N, int64_t vocab) {
  if (!tokens_N.is_cpu()) return;
  const int32_t* tokens = tokens_N.const_data_ptr<int32_t>();
  for (int64_t n = 0; n < tokens_N.numel(); ++n)
    TYCHO_CHECK(tokens[n] >= 0 && tokens[n] < vocab,
                "[{}] token {} at position {} is outside the vocabulary of {}. Was the data made with a "
                "different tokenizer?",
                op, tokens[n], n, vocab);
}

void check_positions(const char* op, int64_t seq, int64_t first_position, int64_t num_positions) {
  TYCHO_CHECK(seq > 0 && first_position >= 0 && first_position + seq <= num_positions,
              "[{}] positions {}..{} are outside the table of {}", op, first_position,
              first_position + seq - 1, num_positions);
}

PositionRows position_rows(const LearnedPositions& positions, RowsShape shape, const Tensor& y_ND) {
  const Tensor& table_PD = positions.table_PD;
  if (!table_PD.defined()) return {};
  const RowsShape table = rows_of("embedding", "positions", table_PD);
  check_tensor("embedding", "positions", table_PD, {table.rows, shape.dim}, y_ND.scalar_type(),
               y_ND.device());
  check_positions("embedding", positions.seq, positions.first_position, table.rows);
  return {table_PD.const_data_ptr(), positions.seq, positions.first_position};
}

}  // namespace

void embedding(const Tensor& tokens_N, const Tensor& table_VD, Tensor& y_ND,
               const LearnedPositions& positions) {
  const Range range("tycho::embedding");
  const RowsShape shape = rows_of("embedding", "y", y_ND);
  const RowsShape table = rows_of("embedding", "table", table_VD);
  const auto dtype = y_ND.scalar_type();
  const auto device = y_ND.device();
  check_tensor("embedding", "y", y_ND, {shape.rows, shape.dim}, dtype, device);
  check_tensor("embedding", "table", table_VD, {table.rows, shape.dim}, dtype, device);
  check_tensor("embedding", "tokens", tokens_N, {shape.rows}, at::kInt, device);
  check_tokens("embedding", tokens_N, table.rows);
  kernels(y_ND).embedding(shape, dtype_of("embedding", y_ND), tokens_N.const_data_ptr<int32_t>(),
                          table_VD.const_data_ptr(), position_rows(positions, shape, y_ND),
                          y_ND.mutable_data_ptr(), stream_of(y_ND));
}

void embedding_backward(const Tensor& tokens_N, const Tensor& dy_ND, Tensor& dtable_VD) {
  const Range range("tycho::embedding_backward");
  const char* op = "embedding_backward";
  const RowsShape shape = rows_of(op, "dy", dy_ND);
  const RowsShape table = rows_of(op, "dtable", dtable_VD);
  const auto device = dy_ND.device();
  check_tensor(op, "dy", dy_ND, {shape.rows, shape.dim}, dy_ND.scalar_type(), device);
  check_tensor(op, "dtable", dtable_VD, {table.rows, shape.dim}, at::kFloat, device);
  check_tensor(op, "tokens", tokens_N, {shape.rows}, at::kInt, device);
  check_tokens(op, tokens_N, table.rows);
  const KernelTable& kernel = kernels(dy_ND);
  Tensor workspace =
      at::empty({kernel.embedding_backward_workspace(shape, table.rows)}, dy_ND.options().dtype(at::kByte));
  kernel.embedding_backward(shape, dtype_of(op, dy_ND), tokens_N.const_data_ptr<int32_t>(), table.rows,
                            dy_ND.const_data_ptr(), dtable_VD.mutable_data_ptr<float>(),
                            workspace.mutable_data_ptr(), stream_of(dy_ND));
}

void position_gradient(const Tensor& dy_ND, int64_t seq, Tensor& dtable_PD, bool add) {
  const Range range("tycho::position_gradient");
  const char* op = "position_gradient";
  const RowsShape shape = rows_of(op, "dy", dy_ND);
  const RowsShape table = rows_of(op, "dtable", dtable_PD);
  check_tensor(op, "dy", dy_ND, {shape.rows, shape.dim}, dy_ND.scalar_type(), dy_ND.device());
  check_tensor(op, "dtable", dtable_PD, {table.rows, shape.dim}, at::kFloat, dy_ND.device());
  check_positions(op, seq, 0, table.rows);
  kernels(dy_ND).position_gradient(shape, dtype_of(op, dy_ND), seq, dy_ND.const_data_ptr(),
                                   dtable_PD.mutable_data_ptr<float>(), add, stream_of(dy_ND));
  if (!add) dtable_PD.narrow(0, seq, table.rows - seq).zero_();
}

}  // namespace tycho
