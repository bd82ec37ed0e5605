// The norm of a family: RMSNorm or LayerNorm, with or without a bias.
#pragma once
#include "trainer/families/decoder_spec.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

struct NormParams {
  const Tensor& weight_D;
  const Tensor& bias_D;  // undefined: none
};
/// Gradients of a norm's parameters. Undefined ones are not computed.
struct NormGrads {
  Tensor& weight_D;
  Tensor& bias_D;
};
/// Statistics kept from forward to backward, fp32; RMSNorm does not use the mean.
struct NormStats {
  Tensor& mean;
  Tensor& inv;
};

class Norm {
 public:
  explicit Norm(const NormSpec& spec) : spec_(spec) {}
  /// Requires rows as kernels/layer_norm.h and rms_norm.h do; y may be x.
  void forward(NormParams p, const Tensor& x, NormStats stats, Tensor& y) const;
  void backward(NormParams p, const Tensor& x, NormStats stats, const Tensor& dy, Tensor& dx, bool add_to_dx,
                NormGrads g, bool add) const;
  /// Returns y for generation, which keeps nothing.
  Tensor apply(NormParams p, const Tensor& x_ND) const;

 private:
  NormSpec spec_;
};

}  // namespace tycho
