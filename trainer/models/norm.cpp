// Dispatches to the kernels of RMSNorm or LayerNorm.
#include "trainer/models/norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "trainer/kernels/layer_norm.h"
#include "trainer/kernels/rms_norm.h"

namespace tycho {

void Norm::forward(NormParams p, const Tensor& x, NormStats stats, Tensor& y, NormTerms terms,
                   RowCast* cast) const {
  if (spec_.kind == NormKind::kRms)
    rms_norm(x, p.weight_D, spec_.weight_offset, spec_.eps, y, stats.inv, terms, cast);
  else
    layer_norm(x, p.weight_D, p.bias_D, spec_.eps, y, stats.mean, stats.inv, terms, cast);
}

void Norm::backward(NormParams p, const Tensor& x, NormStats stats, const Tensor& dy, Tensor& dx,
                    bool add_to_dx, NormGrads g, bool add) const {
  if (spec_.kind == NormKind::kRms)
    rms_norm_backward(x, p.weight_D, spec_.weight_offset, stats.inv, dy, dx, add_to_dx, g.weight_D, add);
  else
    layer_norm_backward(x, p.weight_D, stats.mean, stats.inv, dy, dx, add_to_dx, g.weight_D, g.bias_D, add);
}

Tensor Norm::apply(NormParams p, const Tensor& x_ND) const {
  const int64_t groups = x_ND.numel() / p.weight_D.numel();
  Tensor mean = at::empty({groups}, x_ND.options().dtype(at::kFloat)), inv = at::empty_like(mean);
  Tensor y_ND = at::empty(x_ND.sizes(), x_ND.options());
  forward(p, x_ND, {mean, inv}, y_ND);
  return y_ND;
}

}  // namespace tycho
