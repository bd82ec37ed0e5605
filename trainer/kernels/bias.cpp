// Checks of the bias of a linear layer.
#include "trainer/kernels/bias.h"

#include <ATen/ops/empty.h>

#include "trainer/kernels/dispatch.h"
#include "trainer/profiler/range.h"

namespace tycho {

void add_bias(const Tensor& bias_M, const Tensor& x_NM, Tensor& y_NM) {
  const Range range("tycho::add_bias");
  const RowsShape shape = rows_of("add_bias", "y", y_NM);
  check_tensor("add_bias", "x", x_NM, {shape.rows, shape.dim}, y_NM.scalar_type(), y_NM.device());
  check_tensor("add_bias", "y", y_NM, {shape.rows, shape.dim}, y_NM.scalar_type(), y_NM.device());
  check_tensor("add_bias", "bias", bias_M, {shape.dim}, y_NM.scalar_type(), y_NM.device());
  kernels(y_NM).add_bias(shape, dtype_of("add_bias", y_NM), bias_M.const_data_ptr(), x_NM.const_data_ptr(),
                         y_NM.mutable_data_ptr(), stream_of(y_NM));
}

void bias_gradient(const Tensor& dy_NM, Tensor& dbias_M, bool add) {
  const Range range("tycho::bias_gradient");
  const char* op = "bias_gradient";
  const RowsShape shape = rows_of(op, "dy", dy_NM);
  check_tensor(op, "dy", dy_NM, {shape.rows, shape.dim}, dy_NM.scalar_type(), dy_NM.device());
  check_tensor(op, "dbias", dbias_M, {shape.dim}, at::kFloat, dy_NM.device());
  const KernelTable& table = kernels(dy_NM);
  Tensor workspace = at::empty({table.bias_gradient_workspace(shape)}, dbias_M.options());
  table.bias_gradient(shape, dtype_of(op, dy_NM), dy_NM.const_data_ptr(), dbias_M.mutable_data_ptr<float>(),
                      add, workspace.mutable_data_ptr<float>(), stream_of(dy_NM));
}

}  // namespace tycho
