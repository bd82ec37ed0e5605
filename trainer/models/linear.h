// A linear layer: a matrix and perhaps a bias.
#pragma once
#include "trainer/kernels/tensor.h"
#include "trainer/models/adapters.h"
#include "trainer/models/fp8_linear.h"
#include "trainer/sharding/gathered_unit.h"

namespace tycho {

/// Returns the view, or an undefined tensor for index -1, which stands for a view that the family does not
/// have.
const Tensor& view(const Views& views, int index);
Tensor& view(Views& views, int index);

// N tokens, K inputs, M outputs.
struct LinearParams {
  const Tensor& weight;  // [M, K], or [K, M] when in_out
  const Tensor& bias_M;  // undefined: none
  bool in_out = false;
  LayerAdapters adapters = {};
  Fp8Linear fp8 = {};  // none: products of the inputs' own dtype
};
struct LinearGrads {
  Tensor& weight;
  Tensor& bias_M;
  Views& unit;  // all of the block's, including those of adapters
};

// All functions include the layer's adapters.
/// y = weight x + bias + residual. An undefined residual stands for nothing.
void linear(LinearParams p, const Tensor& x_NK, Tensor& y_NM);
void linear_add(LinearParams p, const Tensor& x_NK, const Tensor& residual_NM, Tensor& y_NM);
/// True if linear_add adds the residual in a pass of its own, to the output of the product and nothing else.
bool adds_apart(const LinearParams& p, const Tensor& residual_NM);
/// Computes dx from dy.
void linear_input_gradient(LinearParams p, const Tensor& dy_NM, Tensor& dx_NK);
/// Computes the parameters' gradients, which are written or added; undefined ones are not computed.
void linear_weight_gradient(LinearParams p, const Tensor& x_NK, const Tensor& dy_NM, LinearGrads g, bool add);

}  // namespace tycho
