// The norm of a family: RMSNorm or LayerNorm, with or without a bias.
#pragma once
#include "trainer/kernels/tensor.h"
#include "trainer/layout/decoder_spec.h"

namespace tycho {

struct NormParams {
  const Tensor& weight_D;
  const Tensor& bias_D;  // undefined: none
};
/// Undefined ones are not computed.
struct NormGrads {
  Tensor& weight_D;
  Tensor& bias_D;
};
/// Kept from forward to backward, fp32; RMSNorm leaves the mean alone.
struct NormStats {
  Tensor& mean;
  Tensor& inv;
};

class Norm {
 public:
  Norm(NormKind kind, double eps) : kind_(kind), eps_(eps) {}
  explicit Norm(const DecoderSpec& spec) : Norm(spec.norm, spec.norm_eps) {}
  /// Rows as kernels/layer_norm.h and rms_norm.h want them; y may be x.
  void forward(NormParams p, const Tensor& x, NormStats stats, Tensor& y) const;
  void backward(NormParams p, const Tensor& x, NormStats stats, const Tensor& dy, Tensor& dx, bool add_to_dx,
                NormGrads g, bool add) const;
  /// For generation, which keeps nothing.
  Tensor apply(NormParams p, const Tensor& x_ND) const;

 private:
  NormKind kind_;
  double eps_;
};

}  // namespace tycho
