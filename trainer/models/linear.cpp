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

void linear(LinearParams p, const Tensor& x_NK, Tensor& y_NM) {
  if (p.fp8)
    fp8_linear(*p.fp8, p.weight, p.in_out, x_NK, {}, y_NM);
  else
    p.in_out ? matmul_nn(x_NK, p.weight, y_NM) : matmul_nt(x_NK, p.weight, y_NM);
  if (p.bias_M.defined()) add_bias(p.bias_M, y_NM, y_NM);
  add_adapters(p.adapters, x_NK, y_NM);
}

void linear_add(LinearParams p, const Tensor& x_NK, const Tensor& residual_NM, Tensor& y_NM) {
  // Writes the bias first and lets the product add to it, so that a bias costs no extra pass.
  if (p.bias_M.defined())
    add_bias(p.bias_M, residual_NM, y_NM);
  else if (p.in_out && !p.fp8)
    y_NM.copy_(residual_NM);
  if (p.fp8)
    fp8_linear(*p.fp8, p.weight, p.in_out, x_NK, p.bias_M.defined() ? y_NM : residual_NM, y_NM);
  else if (p.in_out)
    matmul_nn(x_NK, p.weight, y_NM, /*accumulate=*/true);
  else
    matmul_nt_add(x_NK, p.weight, p.bias_M.defined() ? y_NM : residual_NM, y_NM);
  add_adapters(p.adapters, x_NK, y_NM);
}

void linear_input_gradient(LinearParams p, const Tensor& dy_NM, Tensor& dx_NK) {
  if (p.fp8)
    fp8_input_gradient(*p.fp8, p.weight, p.in_out, dy_NM, dx_NK);
  else
    p.in_out ? matmul_nt(dy_NM, p.weight, dx_NK) : matmul_nn(dy_NM, p.weight, dx_NK);
  add_adapters_input_gradient(p.adapters, dy_NM, dx_NK);
}

void linear_weight_gradient(LinearParams p, const Tensor& x_NK, const Tensor& dy_NM, LinearGrads g,
                            bool add) {
  if (g.weight.defined() && p.fp8 && has_fp8_weight_gradient(*p.fp8))
    fp8_weight_gradient(*p.fp8, p.in_out, x_NK, dy_NM, g.weight, add);
  else if (g.weight.defined())
    p.in_out ? matmul_tn(x_NK, dy_NM, g.weight, add) : matmul_tn(dy_NM, x_NK, g.weight, add);
  if (g.bias_M.defined()) bias_gradient(dy_NM, g.bias_M, add);
  adapters_weight_gradient(p.adapters, x_NK, dy_NM, g.unit, add);
}

}  // namespace tycho
