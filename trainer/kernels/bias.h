// The bias of a linear layer.
#pragma once
#include "trainer/kernels/tensor.h"

namespace tycho {

/// y_NM = x_NM + bias_M on every row; all fp32 or all bf16, contiguous. y may be x.
void add_bias(const Tensor& bias_M, const Tensor& x_NM, Tensor& y_NM);

/// dbias_M (fp32) = the sums of dy_NM's columns, or += them. dy fp32 or bf16. Repeatable: partial sums are
/// added in a fixed order for any number of threads.
void bias_gradient(const Tensor& dy_NM, Tensor& dbias_M, bool add);

}  // namespace tycho
