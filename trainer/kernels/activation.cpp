// Checks of activations.
#include "trainer/kernels/activation.h"

#include <ATen/ops/empty.h>

#include "trainer/kernels/dispatch.h"
#include "trainer/profiler/range.h"

namespace tycho {

void activation(Activation f, const Tensor& x, Tensor& y) {
  const Range range("tycho::activation");
  const char* op = "activation";
  check_tensor(op, "x", x, x.sizes(), x.scalar_type(), x.device());
  check_tensor(op, "y", y, x.sizes(), x.scalar_type(), x.device());
  kernels(x).activation(x.numel(), dtype_of(op, x), f, x.const_data_ptr(), y.mutable_data_ptr(),
                        stream_of(x));
}

void activation_backward(Activation f, const Tensor& x, const Tensor& dy, Tensor& dx, Tensor& y) {
  const Range range("tycho::activation_backward");
  const char* op = "activation_backward";
  check_tensor(op, "x", x, x.sizes(), x.scalar_type(), x.device());
  check_tensor(op, "dy", dy, x.sizes(), x.scalar_type(), x.device());
  check_tensor(op, "dx", dx, x.sizes(), x.scalar_type(), x.device());
  check_tensor(op, "y", y, x.sizes(), x.scalar_type(), x.device());
  kernels(x).activation_backward(x.numel(), dtype_of(op, x), f, x.const_data_ptr(), dy.const_data_ptr(),
                                 dx.mutable_data_ptr(), y.mutable_data_ptr(), stream_of(x));
}

void bias_activation(Activation f, const Tensor& bias_M, const Tensor& x_NM, Tensor& y_NM) {
  const Range range("tycho::bias_activation");
  const char* op = "bias_activation";
  const RowsShape shape = rows_of(op, "x", x_NM);
  const auto dtype = x_NM.scalar_type();
  check_tensor(op, "x", x_NM, x_NM.sizes(), dtype, x_NM.device());
  check_tensor(op, "y", y_NM, x_NM.sizes(), dtype, x_NM.device());
  check_tensor(op, "bias", bias_M, {shape.dim}, dtype, x_NM.device());
  kernels(x_NM).bias_activation(shape, dtype_of(op, x_NM), f, bias_M.const_data_ptr(), x_NM.const_data_ptr(),
                                y_NM.mutable_data_ptr(), stream_of(x_NM));
}

void bias_activation_backward(Activation f, const Tensor& bias_M, const Tensor& x_NM, const Tensor& dy_NM,
                              Tensor& dx_NM, Tensor& y_NM, Tensor& dbias_M, bool add) {
  const Range range("tycho::bias_activation_backward");
  const char* op = "bias_activation_backward";
  const RowsShape shape = rows_of(op, "x", x_NM);
  const auto dtype = x_NM.scalar_type();
  const auto device = x_NM.device();
  check_tensor(op, "x", x_NM, x_NM.sizes(), dtype, device);
  check_tensor(op, "dy", dy_NM, x_NM.sizes(), dtype, device);
  check_tensor(op, "dx", dx_NM, x_NM.sizes(), dtype, device);
  check_tensor(op, "y", y_NM, x_NM.sizes(), dtype, device);
  check_tensor(op, "bias", bias_M, {shape.dim}, dtype, device);
  if (dbias_M.defined()) check_tensor(op, "dbias", dbias_M, {shape.dim}, at::kFloat, device);
  const KernelTable& table = kernels(x_NM);
  Tensor workspace =
      at::empty({table.bias_activation_backward_workspace(shape)}, x_NM.options().dtype(at::kFloat));
  table.bias_activation_backward(shape, dtype_of(op, x_NM), f, bias_M.const_data_ptr(), x_NM.const_data_ptr(),
                                 dy_NM.const_data_ptr(), dx_NM.mutable_data_ptr(), y_NM.mutable_data_ptr(),
                                 data_or_null(dbias_M), add, workspace.mutable_data_ptr<float>(),
                                 stream_of(x_NM));
}

void gated_activation(Activation f, const Tensor& gate_up_N2F, Tensor& y_NF) {
  const Range range("tycho::gated_activation");
  const char* op = "gated_activation";
  const RowsShape shape = rows_of(op, "y", y_NF);
  const auto dtype = y_NF.scalar_type();
  check_tensor(op, "y", y_NF, {shape.rows, shape.dim}, dtype, y_NF.device());
  check_tensor(op, "gate_up", gate_up_N2F, {shape.rows, 2 * shape.dim}, dtype, y_NF.device());
  kernels(y_NF).gated_activation(shape, dtype_of(op, y_NF), f, gate_up_N2F.const_data_ptr(),
                                 y_NF.mutable_data_ptr(), stream_of(y_NF));
}

void activation_with_cast(Activation f, bool gated, const Tensor& bias_F, const Tensor& x, Tensor& y_NF,
                          RowCast& cast) {
  const Range range("tycho::activation_with_cast");
  const char* op = "activation_with_cast";
  const RowsShape in = rows_of(op, "x", x), shape = {in.rows, gated ? in.dim / 2 : in.dim};
  check_tensor(op, "x", x, {in.rows, gated ? 2 * shape.dim : shape.dim}, at::kBFloat16, x.device());
  if (bias_F.defined()) check_tensor(op, "bias", bias_F, {shape.dim}, at::kBFloat16, x.device());
  if (y_NF.defined() || !cast.is_made())
    check_tensor(op, "y", y_NF, {shape.rows, shape.dim}, at::kBFloat16, x.device());
  kernels(x).activation_casts(shape, f, gated, bias_F.defined() ? bias_F.const_data_ptr() : nullptr,
                              x.const_data_ptr(), y_NF.defined() ? y_NF.mutable_data_ptr() : nullptr,
                              cast.memory(op, {shape.rows, shape.dim}, x), stream_of(x));
}

void gated_activation_backward(Activation f, const Tensor& gate_up_N2F, const Tensor& dy_NF,
                               Tensor& dgate_up_N2F, Tensor& y_NF) {
  const Range range("tycho::gated_activation_backward");
  const char* op = "gated_activation_backward";
  const RowsShape shape = rows_of(op, "dy", dy_NF);
  const auto dtype = dy_NF.scalar_type();
  const auto device = dy_NF.device();
  check_tensor(op, "dy", dy_NF, {shape.rows, shape.dim}, dtype, device);
  check_tensor(op, "gate_up", gate_up_N2F, {shape.rows, 2 * shape.dim}, dtype, device);
  check_tensor(op, "dgate_up", dgate_up_N2F, {shape.rows, 2 * shape.dim}, dtype, device);
  check_tensor(op, "y", y_NF, {shape.rows, shape.dim}, dtype, device);
  kernels(dy_NF).gated_activation_backward(shape, dtype_of(op, dy_NF), f, gate_up_N2F.const_data_ptr(),
                                           dy_NF.const_data_ptr(), dgate_up_N2F.mutable_data_ptr(),
                                           y_NF.mutable_data_ptr(), stream_of(dy_NF));
}

}  // namespace tycho
