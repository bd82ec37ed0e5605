// Checks of the gradient norm, and the few scalars around it.
#include "trainer/kernels/optimizer/grad_norm.h"

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/profiler/range.h"

namespace tycho {

void add_sum_of_squares(const Tensor& grads, Tensor& sum_1) {
  const Range range("tycho::add_sum_of_squares");
  check_tensor("grad_norm", "grads", grads, grads.sizes(), at::kFloat, grads.device());
  check_tensor("grad_norm", "sum", sum_1, {1}, at::kDouble, grads.device());
  kernels(grads).sum_of_squares(grads.numel(), grads.const_data_ptr<float>(),
                                sum_1.mutable_data_ptr<double>(), stream_of(grads));
}

void clip_scale(const Tensor& sum_1, double max_norm, Tensor& norm_1, Tensor& scale_1) {
  TYCHO_CHECK(max_norm >= 0, "[grad_norm] max_norm must be 0 (no clipping) or more, got {}", max_norm);
  check_tensor("grad_norm", "sum", sum_1, {1}, at::kDouble, sum_1.device());
  check_tensor("grad_norm", "norm", norm_1, {1}, at::kFloat, sum_1.device());
  check_tensor("grad_norm", "scale", scale_1, {1}, at::kFloat, sum_1.device());
  const Tensor norm = sum_1.sqrt();
  norm_1.copy_(norm);
  if (max_norm == 0)
    scale_1.fill_(1);
  else
    scale_1.copy_(norm.add(1e-6).reciprocal_().mul_(max_norm).clamp_max_(1));
}

}  // namespace tycho
