// The feed-forward of Llama.
#include "trainer/models/swiglu_mlp.h"

#include "trainer/kernels/matmul.h"
#include "trainer/kernels/swiglu.h"

namespace tycho {

void SwigluMlp::forward(Params p, const Tensor& x_ND, const Tensor& residual_ND, Tensor& gate_up_N2F,
                        Tensor& hidden_NF, Tensor& y_ND) {
  matmul_nt(x_ND, p.gate_up_2FD, gate_up_N2F);
  swiglu(gate_up_N2F, hidden_NF);
  matmul_nt_add(hidden_NF, p.down_DF, residual_ND, y_ND);
}

void SwigluMlp::backward(Params p, const Tensor& x_ND, Tensor& gate_up_N2F, const Tensor& dy_ND, Grads g,
                         bool add, Scratch scratch, Tensor& dx_ND) {
  matmul_nn(dy_ND, p.down_DF, scratch.d_hidden_NF);
  swiglu_backward(gate_up_N2F, scratch.d_hidden_NF, /*dgate_up_N2F=*/gate_up_N2F, scratch.hidden_NF);
  matmul_tn(dy_ND, scratch.hidden_NF, g.down_DF, add);
  matmul_nn(gate_up_N2F, p.gate_up_2FD, dx_ND);
  matmul_tn(gate_up_N2F, x_ND, g.gate_up_2FD, add);
}

}  // namespace tycho
