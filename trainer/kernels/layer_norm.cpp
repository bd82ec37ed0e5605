// Checks of LayerNorm.
#include "trainer/kernels/layer_norm.h"

#include <ATen/ops/empty.h>

#include "trainer/kernels/dispatch.h"
#include "trainer/kernels/norm_shape.h"
#include "trainer/profiler/range.h"

namespace tycho {
void layer_norm(const Tensor& x_NC, const Tensor& weight_D, const Tensor& bias_D, double eps, Tensor& y_NC,
                Tensor& mean_S, Tensor& inv_std_S, NormTerms terms, RowCast* cast) {
  const Range range("tycho::layer_norm");
  const char* op = "layer_norm";
  const NormShape shape = norm_shape(op, x_NC, weight_D, "y", y_NC);
  const auto device = x_NC.device();
  if (bias_D.defined()) check_tensor(op, "bias", bias_D, {shape.dim}, x_NC.scalar_type(), device);
  check_tensor(op, "mean", mean_S, {shape.rows * shape.groups}, at::kFloat, device);
  check_tensor(op, "inv_std", inv_std_S, {shape.rows * shape.groups}, at::kFloat, device);
  kernels(x_NC).layer_norm(shape, dtype_of(op, x_NC), x_NC.const_data_ptr(), weight_D.const_data_ptr(),
                           bias_D.defined() ? bias_D.const_data_ptr() : nullptr, static_cast<float>(eps),
                           y_NC.mutable_data_ptr(), mean_S.mutable_data_ptr<float>(),
                           inv_std_S.mutable_data_ptr<float>(), norm_adds(op, shape, x_NC, terms),
                           cast ? cast->memory(op, {shape.rows, shape.dim}, y_NC) : CastRows{},
                           stream_of(x_NC));
}

void layer_norm_backward(const Tensor& x_NC, const Tensor& weight_D, const Tensor& mean_S,
                         const Tensor& inv_std_S, const Tensor& dy_NC, Tensor& dx_NC, bool add_to_dx,
                         Tensor& dweight_D, Tensor& dbias_D, bool add_to_dweight) {
  const Range range("tycho::layer_norm_backward");
  const char* op = "layer_norm_backward";
  NormShape shape = norm_shape(op, x_NC, weight_D, "dy", dy_NC);
  const auto device = x_NC.device();
  shape.dx_step = row_step(op, "dx", dx_NC, x_NC.sizes(), x_NC.scalar_type(), device);
  check_tensor(op, "mean", mean_S, {shape.rows * shape.groups}, at::kFloat, device);
  check_tensor(op, "inv_std", inv_std_S, {shape.rows * shape.groups}, at::kFloat, device);
  if (dweight_D.defined()) check_tensor(op, "dweight", dweight_D, {shape.dim}, at::kFloat, device);
  if (dbias_D.defined()) check_tensor(op, "dbias", dbias_D, {shape.dim}, at::kFloat, device);
  const KernelTable& table = kernels(x_NC);
  Tensor workspace = at::empty({table.layer_norm_backward_workspace(shape)}, inv_std_S.options());
  table.layer_norm_backward(shape, dtype_of(op, x_NC), x_NC.const_data_ptr(), weight_D.const_data_ptr(),
                            mean_S.const_data_ptr<float>(), inv_std_S.const_data_ptr<float>(),
                            dy_NC.const_data_ptr(), dx_NC.mutable_data_ptr(), add_to_dx,
                            data_or_null(dweight_D), data_or_null(dbias_D), add_to_dweight,
                            workspace.mutable_data_ptr<float>(), stream_of(x_NC));
}

}  // namespace tycho
