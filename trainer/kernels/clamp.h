// Bounds on every element: MPT's clip_qkv.
#pragma once
#include "trainer/kernels/tensor.h"

namespace tycho {

/// y = x limited to [-limit, limit], limit > 0; NaN stays NaN. Contiguous, any shape, fp32 or bf16. y may be
/// x.
void clamp(double limit, const Tensor& x, Tensor& y);

/// dx = dy where |x| <= limit, else 0; x is the input of clamp. dx may be dy.
void clamp_backward(double limit, const Tensor& x, const Tensor& dy, Tensor& dx);

}  // namespace tycho
