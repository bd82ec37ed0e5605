// RMSNorm, forward and backward.
#pragma once
#include "trainer/kernels/tensor.h"

namespace tycho {

/// y = x / rms(x) * weight, rms over the last dim, statistics in fp32.   (Zhang & Sennrich 2019,
/// arXiv:1910.07467) x_ND, y_ND: [N, D] contiguous, fp32 or bf16; weight_D the same dtype; inv_rms_N: fp32,
/// kept for backward. y may be x.
void rms_norm(const Tensor& x_ND, const Tensor& weight_D, double eps, Tensor& y_ND, Tensor& inv_rms_N);

/// dx (+)= the gradient with respect to x; dweight_D (fp32) (+)= the one with respect to weight. Repeatable:
/// partial sums are added in a fixed order for a given number of threads.
void rms_norm_backward(const Tensor& x_ND, const Tensor& weight_D, const Tensor& inv_rms_N,
                       const Tensor& dy_ND, Tensor& dx_ND, bool add_to_dx, Tensor& dweight_D,
                       bool add_to_dweight);

}  // namespace tycho
