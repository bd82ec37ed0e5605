// The feed-forward of a block, gated or plain.
#pragma once
#include "trainer/base/activation.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/decoder_layout.h"
#include "trainer/layout/decoder_spec.h"
#include "trainer/models/activations.h"
#include "trainer/models/linear.h"
#include "trainer/units/gathered_unit.h"

namespace tycho {

// N tokens, D width, F hidden.
/// y = down( f(gate(x)) * up(x) ) + residual, or down( f(up(x)) ) + residual    (Shazeer 2020,
/// arXiv:2002.05202) forward keeps what the first matrix gives, before the bias where there is no gate; what
/// follows is computed again in backward: cheaper than keeping it.
class FeedForward {
 public:
  FeedForward(const DecoderSpec& spec, int64_t block);
  void forward(const Views& p, const Tensor& x_ND, const Tensor& residual_ND, BlockActivations act,
               Tensor& y_ND) const;
  /// Fills slot kUp as forward does, and no more.
  void forward_up(const Views& p, const Tensor& x_ND, BlockActivations act) const;
  /// dx_ND from dy_ND; slot kUp becomes its gradient. Gradients are written to g, or added.
  void backward(const Views& p, const Tensor& x_ND, BlockActivations act, const Tensor& dy_ND, Views& g,
                bool add, Tensor& dx_ND) const;
  /// For generation.
  Tensor apply(const Views& p, const Tensor& x_ND, const Tensor& residual_ND) const;

 private:
  /// The bias goes with the activation, in one pass, where there is no gate.
  bool fuses_bias() const { return !gated_ && at_.up_bias >= 0; }
  LinearParams up(const Views& p) const {
    return {p[at_.up_weight], view(p, fuses_bias() ? -1 : at_.up_bias), in_out_};
  }
  LinearParams down(const Views& p) const { return {p[at_.down_weight], view(p, at_.down_bias), in_out_}; }
  void activate(const Views& p, const Tensor& up, Tensor& hidden_NF) const;
  void activate_backward(const Views& p, Tensor& up, Tensor& d_hidden_NF, Tensor& hidden_NF, Views& g,
                         bool add) const;

  BlockParams at_;
  Activation activation_;
  bool gated_, in_out_;
  int64_t ffn_width_;
};

}  // namespace tycho
