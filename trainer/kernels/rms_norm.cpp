// Checks of RMSNorm.
#include "trainer/kernels/rms_norm.h"

#include <ATen/ops/empty.h>

#include "trainer/kernels/dispatch.h"
#include "trainer/kernels/norm_shape.h"
#include "trainer/profiler/range.h"

namespace tycho {

void rms_norm(const Tensor& x_NC, const Tensor& weight_D, double weight_offset, double eps, Tensor& y_NC,
              Tensor& inv_rms_S, NormTerms terms, RowCast* cast) {
  const Range range("tycho::rms_norm");
  const NormShape shape = norm_shape("rms_norm", x_NC, weight_D, "y", y_NC);
  check_tensor("rms_norm", "inv_rms", inv_rms_S, {shape.rows * shape.groups}, at::kFloat, x_NC.device());
  kernels(x_NC).rms_norm(shape, dtype_of("rms_norm", x_NC), x_NC.const_data_ptr(), weight_D.const_data_ptr(),
                         static_cast<float>(weight_offset), static_cast<float>(eps), y_NC.mutable_data_ptr(),
                         inv_rms_S.mutable_data_ptr<float>(), norm_adds("rms_norm", shape, x_NC, terms),
                         cast ? cast->memory("rms_norm", {shape.rows, shape.dim}, y_NC) : CastRows{},
                         stream_of(x_NC));
}

void rms_norm_backward(const Tensor& x_NC, const Tensor& weight_D, double weight_offset,
                       const Tensor& inv_rms_S, const Tensor& dy_NC, Tensor& dx_NC, bool add_to_dx,
                       Tensor& dweight_D, bool add_to_dweight) {
  const Range range("tycho::rms_norm_backward");
  const char* op = "rms_norm_backward";
  NormShape shape = norm_shape(op, x_NC, weight_D, "dy", dy_NC);
  const auto device = x_NC.device();
  shape.dx_step = row_step(op, "dx", dx_NC, x_NC.sizes(), x_NC.scalar_type(), device);
  check_tensor(op, "inv_rms", inv_rms_S, {shape.rows * shape.groups}, at::kFloat, device);
  if (dweight_D.defined()) check_tensor(op, "dweight", dweight_D, {shape.dim}, at::kFloat, device);
  const KernelTable& table = kernels(x_NC);
  Tensor workspace = at::empty({table.rms_norm_backward_workspace(shape)}, inv_rms_S.options());
  table.rms_norm_backward(shape, dtype_of(op, x_NC), x_NC.const_data_ptr(), weight_D.const_data_ptr(),
                          static_cast<float>(weight_offset), inv_rms_S.const_data_ptr<float>(),
                          dy_NC.const_data_ptr(), dx_NC.mutable_data_ptr(), add_to_dx,
                          data_or_null(dweight_D), add_to_dweight, workspace.mutable_data_ptr<float>(),
                          stream_of(x_NC));
}

}  // namespace tycho
