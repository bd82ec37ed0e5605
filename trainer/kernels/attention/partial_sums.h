// Adds attention to a part of the keys to the result of other parts.
#pragma once
#include "trainer/kernels/tensor.h"

namespace tycho {

/// Returns x with 0 for -infinity, which is the log-sum-exp of queries that see no key of a part.
Tensor or_zero(const Tensor& x);

/// Adds a part of the keys to `out` [.., d], fp32, the softmax over earlier keys times their values, and to
/// log_sum_exp [.., 1] of their scores (Dao et al. 2022, arXiv:2205.14135). log_sum_exp is -infinity, and
/// `out` is 0, where no key has been seen.
void add_part(const Tensor& part_out, const Tensor& part_log_sum_exp, Tensor out, Tensor log_sum_exp);

}  // namespace tycho
