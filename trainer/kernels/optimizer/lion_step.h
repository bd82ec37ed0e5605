// Lion over a flat buffer.
#pragma once
#include "trainer/kernels/optimizer/optimized_weights.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// One Lion update of n contiguous elements (Chen et al. 2023, arXiv:2302.06675):
///   g = grad * grad_scale;  w = w (1 - decay) - lr sign(b1 m + (1-b1) g);  m = b2 m + (1-b2) g
/// grads, m: fp32, shaped like the weights. grad_scale_1: fp32, one element, on the device.
void lion_step(const LionScalars& scalars, const Tensor& grad_scale_1, const WeightTensors& weights,
               const Tensor& grads, Tensor& m);

}  // namespace tycho
