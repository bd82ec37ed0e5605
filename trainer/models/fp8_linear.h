// The products of a linear layer in fp8, as torchao's Float8Linear.
#pragma once
#include "trainer/kernels/tensor.h"
#include "trainer/layout/decoder_layout.h"
#include "trainer/layout/fp8_layers.h"
#include "trainer/models/activations.h"

namespace tycho {

// N tokens, K inputs, M outputs. Weights are [M, K], or [K, M] when in_out. Layers that are stacked in one
// matrix have scales of their own. x, dy and weights are cast again by each function.

/// Returns the product of that view of a block, for a pass of training or evaluation; null if it is bf16's.
/// Generation computes in bf16: it has no pass.
const Fp8Product* fp8_product_of(const BlockParams& at, int view, const BlockActivations& act);
const Fp8Product* fp8_product_of(const BlockParams& at, int view);

/// y = weight x (+ added, which may be y or undefined).
void fp8_linear(const Fp8Product& product, const Tensor& weight, bool in_out, const Tensor& x_NK,
                const Tensor& added_NM, Tensor& y_NM);
/// Computes dx from dy. The gradients of stacked layers are added in bf16, as autograd adds them.
void fp8_input_gradient(const Fp8Product& product, const Tensor& weight, bool in_out, const Tensor& dy_NM,
                        Tensor& dx_NK);
/// Computes the gradient of the weight, which is written or added. Requires has_fp8_weight_gradient().
void fp8_weight_gradient(const Fp8Product& product, bool in_out, const Tensor& x_NK, const Tensor& dy_NM,
                         Tensor& dw, bool add);
/// False if the recipe multiplies gradients of weights in bf16.
bool has_fp8_weight_gradient(const Fp8Product& product);

}  // namespace tycho
