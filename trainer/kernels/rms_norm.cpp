// Checks of RMSNorm.
#include "trainer/kernels/rms_norm.h"

#include "trainer/kernels/dispatch.h"

namespace tycho {

void rms_norm(const Tensor& x_ND, const Tensor& weight_D, double eps, Tensor& y_ND, Tensor& inv_rms_N) {
  const RowsShape shape = rows_of("rms_norm", "x", x_ND);
  const auto dtype = x_ND.scalar_type();
  const auto device = x_ND.device();
  check_tensor("rms_norm", "x", x_ND, {shape.rows, shape.dim}, dtype, device);
  check_tensor("rms_norm", "weight", weight_D, {shape.dim}, dtype, device);
  check_tensor("rms_norm", "y", y_ND, {shape.rows, shape.dim}, dtype, device);
  check_tensor("rms_norm", "inv_rms", inv_rms_N, {shape.rows}, at::kFloat, device);
  kernels(x_ND).rms_norm(shape, dtype_of("rms_norm", x_ND), x_ND.const_data_ptr(), weight_D.const_data_ptr(),
                         static_cast<float>(eps), y_ND.mutable_data_ptr(),
                         inv_rms_N.mutable_data_ptr<float>(), stream_of(x_ND));
}

void rms_norm_backward(const Tensor& x_ND, const Tensor& weight_D, const Tensor& inv_rms_N,
                       const Tensor& dy_ND, Tensor& dx_ND, bool add_to_dx, Tensor& dweight_D,
                       bool add_to_dweight) {
  const char* op = "rms_norm_backward";
  const RowsShape shape = rows_of(op, "x", x_ND);
  const auto dtype = x_ND.scalar_type();
  const auto device = x_ND.device();
  check_tensor(op, "x", x_ND, {shape.rows, shape.dim}, dtype, device);
  check_tensor(op, "weight", weight_D, {shape.dim}, dtype, device);
  check_tensor(op, "inv_rms", inv_rms_N, {shape.rows}, at::kFloat, device);
  check_tensor(op, "dy", dy_ND, {shape.rows, shape.dim}, dtype, device);
  check_tensor(op, "dx", dx_ND, {shape.rows, shape.dim}, dtype, device);
  check_tensor(op, "dweight", dweight_D, {shape.dim}, at::kFloat, device);
  const KernelTable& table = kernels(x_ND);
  Tensor workspace = at::empty({table.rms_norm_backward_workspace(shape)}, dweight_D.options());
  table.rms_norm_backward(shape, dtype_of(op, x_ND), x_ND.const_data_ptr(), weight_D.const_data_ptr(),
                          inv_rms_N.const_data_ptr<float>(), dy_ND.const_data_ptr(), dx_ND.mutable_data_ptr(),
                          add_to_dx, dweight_D.mutable_data_ptr<float>(), add_to_dweight,
                          workspace.mutable_data_ptr<float>(), stream_of(x_ND));
}

}  // namespace tycho
