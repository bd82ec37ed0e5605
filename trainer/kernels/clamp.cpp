// Checks of the bounds on every element.
#include "trainer/kernels/clamp.h"

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/profiler/range.h"

namespace tycho {
namespace {

void check_limit(const char* op, double limit) {
  TYCHO_CHECK(limit > 0, "[{}] expected a limit above 0, got {}", op, limit);
}

}  // namespace

void clamp(double limit, const Tensor& x, Tensor& y) {
  const Range range("tycho::clamp");
  check_limit("clamp", limit);
  check_tensor("clamp", "x", x, x.sizes(), x.scalar_type(), x.device());
  check_tensor("clamp", "y", y, x.sizes(), x.scalar_type(), x.device());
  kernels(x).clamp(x.numel(), dtype_of("clamp", x), static_cast<float>(limit), x.const_data_ptr(),
                   y.mutable_data_ptr(), stream_of(x));
}

void clamp_backward(double limit, const Tensor& x, const Tensor& dy, Tensor& dx) {
  const Range range("tycho::clamp_backward");
  const char* op = "clamp_backward";
  check_limit(op, limit);
  check_tensor(op, "x", x, x.sizes(), x.scalar_type(), x.device());
  check_tensor(op, "dy", dy, x.sizes(), x.scalar_type(), x.device());
  check_tensor(op, "dx", dx, x.sizes(), x.scalar_type(), x.device());
  kernels(x).clamp_backward(x.numel(), dtype_of(op, x), static_cast<float>(limit), x.const_data_ptr(),
                            dy.const_data_ptr(), dx.mutable_data_ptr(), stream_of(x));
}

}  // namespace tycho
