// Checks of SwiGLU.
#include "trainer/kernels/swiglu.h"

#include "trainer/kernels/dispatch.h"

namespace tycho {

void swiglu(const Tensor& gate_up_N2F, Tensor& y_NF) {
  const RowsShape shape = rows_of("swiglu", "y", y_NF);
  const auto dtype = y_NF.scalar_type();
  check_tensor("swiglu", "y", y_NF, {shape.rows, shape.dim}, dtype, y_NF.device());
  check_tensor("swiglu", "gate_up", gate_up_N2F, {shape.rows, 2 * shape.dim}, dtype, y_NF.device());
  kernels(y_NF).swiglu(shape, dtype_of("swiglu", y_NF), gate_up_N2F.const_data_ptr(), y_NF.mutable_data_ptr(),
                       stream_of(y_NF));
}

void swiglu_backward(const Tensor& gate_up_N2F, const Tensor& dy_NF, Tensor& dgate_up_N2F, Tensor& y_NF) {
  const char* op = "swiglu_backward";
  const RowsShape shape = rows_of(op, "dy", dy_NF);
  const auto dtype = dy_NF.scalar_type();
  const auto device = dy_NF.device();
  check_tensor(op, "dy", dy_NF, {shape.rows, shape.dim}, dtype, device);
  check_tensor(op, "gate_up", gate_up_N2F, {shape.rows, 2 * shape.dim}, dtype, device);
  check_tensor(op, "dgate_up", dgate_up_N2F, {shape.rows, 2 * shape.dim}, dtype, device);
  check_tensor(op, "y", y_NF, {shape.rows, shape.dim}, dtype, device);
  kernels(dy_NF).swiglu_backward(shape, dtype_of(op, dy_NF), gate_up_N2F.const_data_ptr(),
                                 dy_NF.const_data_ptr(), dgate_up_N2F.mutable_data_ptr(),
                                 y_NF.mutable_data_ptr(), stream_of(dy_NF));
}

}  // namespace tycho
