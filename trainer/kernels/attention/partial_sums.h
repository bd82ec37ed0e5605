// Attention to a part of the keys, added to what is there of others.
#pragma once
#include "trainer/kernels/tensor.h"

namespace tycho {

/// x, with 0 for -infinity: the log-sum-exp of queries that see no key of a part.
Tensor or_zero(const Tensor& x);

/// out [.., d], fp32, the softmax over some keys times their values, and log_sum_exp [.., 1] of their scores
/// become those of these keys and a part's together (Dao et al. 2022, arXiv:2205.14135). -infinity where no
/// key has been seen; `out` is 0 there.
void add_part(const Tensor& part_out, const Tensor& part_log_sum_exp, Tensor out, Tensor log_sum_exp);

}  // namespace tycho
