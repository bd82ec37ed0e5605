// Rescales both sums to their common log-sum-exp.
#include "trainer/kernels/attention/partial_sums.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/logaddexp.h>

#include <cmath>

namespace tycho {

Tensor or_zero(const Tensor& x) { return x.masked_fill(x == -INFINITY, 0.0); }

void add_part(const Tensor& part_out, const Tensor& part_log_sum_exp, Tensor out, Tensor log_sum_exp) {
  const Tensor both = at::logaddexp(log_sum_exp, part_log_sum_exp), scale = or_zero(both);
  out.mul_((log_sum_exp - scale).exp_()).add_(part_out * (part_log_sum_exp - scale).exp_());
  log_sum_exp.copy_(both);
}

}  // namespace tycho
