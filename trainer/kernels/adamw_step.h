// AdamW over a flat buffer.
#pragma once
#include "trainer/kernels/kernel_table.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// One AdamW update of n contiguous elements (torch.optim.AdamW's formula):
///   g = grad * grad_scale;  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2
///   w = w (1 - lr wd) - lr (m / c1) / (sqrt(v / c2) + eps),  c = 1 - b^step
/// grads, m, v fp32. For fp32 params the weights themselves are the master and `master` is undefined; for
/// bf16 the fp32 master is updated and params = bf16(master), rounded to nearest even. grad_scale_1: fp32,
/// one element, on the device.
void adamw_step(const AdamWScalars& scalars, const Tensor& grad_scale_1, Tensor& params, Tensor& master,
                const Tensor& grads, Tensor& m, Tensor& v);

}  // namespace tycho
