// Checks of the token table.
#include "trainer/kernels/embedding.h"

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"

namespace tycho {
namespace {

void check_tokens(const char* op, const Tensor& tokens_N, int64_t vocab) {
  if (!tokens_N.is_cpu()) return;
  const int32_t* tokens = tokens_N.const_data_ptr<int32_t>();
  for (int64_t n = 0; n < tokens_N.numel(); ++n)
    TYCHO_CHECK(tokens[n] >= 0 && tokens[n] < vocab,
                "[{}] token {} at position {} is outside the vocabulary of {}. Was the data made with "
                "another tokenizer?",
                op, tokens[n], n, vocab);
}

}  // namespace

void embedding(const Tensor& tokens_N, const Tensor& table_VD, Tensor& y_ND) {
  const RowsShape shape = rows_of("embedding", "y", y_ND);
  const RowsShape table = rows_of("embedding", "table", table_VD);
  const auto dtype = y_ND.scalar_type();
  const auto device = y_ND.device();
  check_tensor("embedding", "y", y_ND, {shape.rows, shape.dim}, dtype, device);
  check_tensor("embedding", "table", table_VD, {table.rows, shape.dim}, dtype, device);
  check_tensor("embedding", "tokens", tokens_N, {shape.rows}, at::kInt, device);
  check_tokens("embedding", tokens_N, table.rows);
  kernels(y_ND).embedding(shape, dtype_of("embedding", y_ND), tokens_N.const_data_ptr<int32_t>(),
                          table_VD.const_data_ptr(), y_ND.mutable_data_ptr(), stream_of(y_ND));
}

void embedding_backward(const Tensor& tokens_N, const Tensor& dy_ND, Tensor& dtable_VD) {
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

}  // namespace tycho
