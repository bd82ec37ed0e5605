// AdamW over a flat buffer.
#pragma once
#include "trainer/kernels/optimizer/optimized_weights.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// One AdamW update of n contiguous elements (torch.optim.AdamW's formula with decay = lr x weight_decay):
///   g = grad * grad_scale;  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2
///   w = w (1 - decay) - lr (m / c1) / (sqrt(v / c2) + eps),  c = 1 - b^step
/// grads, m, v: fp32, shaped like the weights. grad_scale_1: fp32, one element, on the device.
void adamw_step(const AdamWScalars& scalars, const Tensor& grad_scale_1, const WeightTensors& weights,
                const Tensor& grads, Tensor& m, Tensor& v);

}  // namespace tycho
