// Chooses the product by the layout of the weight; biases are fused where possible.
#include "trainer/models/linear.h"

#include "trainer/kernels/bias.h"
#include "trainer/kernels/matmul.h"

namespace tycho {

const Tensor& view(const Views& views, int index) {
  static const Tensor none;
  return index < 0 ? none : views[static_cast<size_t>(index)];
}

Tensor& view(Views& views, int index) {
  thread_local Tensor none;
  return index < 0 ? none : views[static_cast<size_t>(index)];
}

void linear(LinearParams p, const Tensor& x_NK, Tensor& y_NM) { linear_add(p, x_NK, {}, y_NM); }

void linear_add(LinearParams p, const Tensor& x_NK, const Tensor& residual_NM, Tensor& y_NM) {
  const bool has_bias = p.bias_M.defined();
  if (p.fp8) {
    // A residual takes the bias first, and the product adds to it.
    const bool both = has_bias && residual_NM.defined();
    if (both) add_bias(p.bias_M, residual_NM, y_NM);
    fp8_linear(p.fp8, p.weight, p.in_out, x_NK, both ? y_NM : residual_NM, y_NM);
    if (has_bias && !both) add_bias(p.bias_M, y_NM, y_NM);
  } else {
    const AddedTerms added{p.bias_M, residual_NM};
    p.in_out ? matmul_nn(x_NK, p.weight, y_NM, added) : matmul_nt(x_NK, p.weight, y_NM, added);
  }
  add_adapters(p.adapters, x_NK, y_NM);
}

bool adds_apart(const LinearParams& p, const Tensor& residual_NM) {
  return p.fp8 && residual_NM.is_cuda() && !p.bias_M.defined() && !p.adapters.any();
}

void linear_input_gradient(LinearParams p, const Tensor& dy_NM, Tensor& dx_NK) {
  if (p.fp8)
    fp8_input_gradient(p.fp8, p.weight, p.in_out, dy_NM, dx_NK);
  else
    p.in_out ? matmul_nt(dy_NM, p.weight, dx_NK) : matmul_nn(dy_NM, p.weight, dx_NK);
  add_adapters_input_gradient(p.adapters, dy_NM, dx_NK);
}

void linear_weight_gradient(LinearParams p, const Tensor& x_NK, const Tensor& dy_NM, LinearGrads g,
                            bool add) {
  Tensor* const bias = g.bias_M.defined() ? &g.bias_M : nullptr;
  if (g.weight.defined() && !(p.fp8 && has_fp8_weight_gradient(p.fp8))) {
    p.in_out ? matmul_tn(x_NK, dy_NM, g.weight, add, {.of_x_K = bias})
             : matmul_tn(dy_NM, x_NK, g.weight, add, {.of_dy_M = bias});
  } else {
    if (g.weight.defined()) fp8_weight_gradient(p.fp8, p.in_out, x_NK, dy_NM, g.weight, add);
    if (bias) bias_gradient(dy_NM, *bias, add);
  }
  adapters_weight_gradient(p.adapters, x_NK, dy_NM, g.unit, add);
}

}  // namespace tycho
