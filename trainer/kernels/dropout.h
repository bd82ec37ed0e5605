// Dropout, combined with the addition to the residual stream.
#pragma once
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// y = residual + x / (1 - p) where the mask keeps, residual where it drops; an undefined residual counts as
/// 0. Contiguous [N, D], all fp32 or all bf16, arithmetic in fp32. y may be x or the residual. The gradient
/// with respect to x is dropout(mask, dy, {}, dx); the one with respect to the residual is dy.
void dropout(const DropoutMask& mask, const Tensor& x_ND, const Tensor& residual_ND, Tensor& y_ND);

}  // namespace tycho
