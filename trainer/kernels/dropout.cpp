// Checks of dropout.
#include "trainer/kernels/dropout.h"

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/profiler/range.h"

namespace tycho {

void dropout(const DropoutMask& mask, const Tensor& x_ND, const Tensor& residual_ND, Tensor& y_ND) {
  const Range range("tycho::dropout");
  const char* op = "dropout";
  TYCHO_CHECK(mask.p >= 0 && mask.p < 1, "[dropout] expected a probability in [0, 1), got {}", mask.p);
  const RowsShape shape = rows_of(op, "x", x_ND);
  const auto dtype = x_ND.scalar_type();
  const auto device = x_ND.device();
  check_tensor(op, "x", x_ND, {shape.rows, shape.dim}, dtype, device);
  if (residual_ND.defined())
    check_tensor(op, "residual", residual_ND, {shape.rows, shape.dim}, dtype, device);
  check_tensor(op, "y", y_ND, {shape.rows, shape.dim}, dtype, device);
  kernels(x_ND).dropout(shape, dtype_of(op, x_ND), mask, x_ND.const_data_ptr(),
                        residual_ND.defined() ? residual_ND.const_data_ptr() : nullptr,
                        y_ND.mutable_data_ptr(), stream_of(x_ND));
}

}  // namespace tycho
