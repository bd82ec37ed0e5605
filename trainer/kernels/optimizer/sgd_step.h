// SGD with momentum over a flat buffer.
#pragma once
#include "trainer/kernels/optimizer/optimized_weights.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// One SGD update of n contiguous elements (torch.optim.SGD's formula, dampening 0):
///   g = grad * grad_scale + weight_decay w;  b = momentum b + g
///   w = w - lr (g + momentum b when nesterov, else b)
/// grads, b: fp32, shaped like the weights; without momentum b is undefined and w = w - lr g. grad_scale_1:
/// fp32, one element, on the device.
void sgd_step(const SgdScalars& scalars, const Tensor& grad_scale_1, const WeightTensors& weights,
              const Tensor& grads, Tensor& b);

}  // namespace tycho
