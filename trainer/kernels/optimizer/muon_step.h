// Elementwise steps of Muon, before and after its matrix products.
#pragma once
#include "trainer/kernels/optimizer/optimized_weights.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// g = grad * grad_scale;  b = momentum b + (1-momentum) g;  update = (1-momentum) g + momentum b when
/// nesterov, else b. grads, b: fp32; update: fp32 or bf16; all contiguous with as many elements.
void muon_momentum(double momentum, bool nesterov, const Tensor& grad_scale_1, const Tensor& grads, Tensor& b,
                   Tensor& update);

/// w = w (1 - decay) - step_size update. update: fp32 or bf16, contiguous, as many elements as the weights.
void add_update(double step_size, double decay, const WeightTensors& weights, const Tensor& update);

}  // namespace tycho
