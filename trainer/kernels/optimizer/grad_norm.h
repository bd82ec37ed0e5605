// The global norm of all gradients, and the factor that clips it. Stays on the device.
#pragma once
#include "trainer/kernels/tensor.h"

namespace tycho {

/// sum_1 (fp64, one element) += the sum of squares of grads (fp32, contiguous).
void add_sum_of_squares(const Tensor& grads, Tensor& sum_1);

/// norm_1 = sqrt(sum_1) as fp32; scale_1 = min(1, max_norm / (norm + 1e-6)), or 1 when max_norm is 0.
void clip_scale(const Tensor& sum_1, double max_norm, Tensor& norm_1, Tensor& scale_1);

}  // namespace tycho
