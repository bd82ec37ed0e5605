// The feed-forward of Llama.
#pragma once
#include "trainer/units/flat_unit.h"

namespace tycho {

// N tokens, D width, F hidden.
/// y = down( silu(gate(x)) * up(x) ) + residual                                (Shazeer 2020,
/// arXiv:2002.05202) forward keeps gate_up_N2F; silu * up is computed again in backward: cheaper than keeping
/// it.
struct SwigluMlp {
  struct Params {
    const Tensor& gate_up_2FD;
    const Tensor& down_DF;
  };
  struct Grads {
    Tensor& gate_up_2FD;
    Tensor& down_DF;
  };
  struct Scratch {
    Tensor& hidden_NF;
    Tensor& d_hidden_NF;
  };
  static void forward(Params p, const Tensor& x_ND, const Tensor& residual_ND, Tensor& gate_up_N2F,
                      Tensor& hidden_NF, Tensor& y_ND);
  /// dx_ND from dy_ND; gate_up_N2F is overwritten by its gradient. Gradients are written to g, or added.
  static void backward(Params p, const Tensor& x_ND, Tensor& gate_up_N2F, const Tensor& dy_ND, Grads g,
                       bool add, Scratch scratch, Tensor& dx_ND);
};

}  // namespace tycho
