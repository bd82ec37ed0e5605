// The norm of a family: RMSNorm or LayerNorm, with or without a bias.
#pragma once
#include <optional>

#include "trainer/families/decoder_spec.h"
#include "trainer/kernels/fp8.h"
#include "trainer/kernels/norm_shape.h"
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
  void forward(NormParams p, const Tensor& x, NormStats stats, Tensor& y, NormTerms terms = no_terms(),
               RowCast* cast = nullptr) const;
  void backward(NormParams p, const Tensor& x, NormStats stats, const Tensor& dy, Tensor& dx, bool add_to_dx,
                NormGrads g, bool add) const;
  /// Returns y for generation, which keeps nothing.
  Tensor apply(NormParams p, const Tensor& x_ND) const;

 private:
  NormSpec spec_;
};

/// Input of a branch of a block: rows, and their fp8 form where the norm that computes them makes it.
struct BranchInput {
  const Tensor& x_SD;
  std::optional<Fp8Matrix> in_fp8 = std::nullopt;

  /// Returns the fp8 form, or null.
  const Fp8Matrix* fp8() const { return in_fp8 ? &*in_fp8 : nullptr; }
};

/// A norm to come: that of the rows in which a branch ends.
struct NextNorm {
  const Norm& norm;
  NormParams params;
  NormStats stats;
  Tensor& normed_SD;
  RowCast* cast;  // null: none

  void of(const Tensor& x_SD) const { norm.forward(params, x_SD, stats, normed_SD, no_terms(), cast); }
  /// Norms sum = x + residual, which is written. One pass.
  void of_sum(const Tensor& x_SD, const Tensor& residual_SD, Tensor& sum_SD) const {
    norm.forward(params, x_SD, stats, normed_SD, {residual_SD, sum_SD, no_terms().after}, cast);
  }
};

}  // namespace tycho
