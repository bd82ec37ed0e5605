// The optimizers by kind; make_optimizer chooses.
#pragma once
#include "trainer/kernels/tensor.h"
#include "trainer/layout/param_rules.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/segments.h"
#include "trainer/recipe/defined_optimizer.h"
#include "trainer/recipe/optim.h"

namespace tycho {

/// Returns the decay of a step at `lr` as a share of the weight: lr x weight_decay, or, decoupled like in
/// Composer, weight_decay x (lr / peak). lr and peak exclude the rule's scale.
inline double decay_share(const ParamRule& rule, double lr, double peak, bool decoupled) {
  return decoupled ? rule.weight_decay * (lr / peak) : rule.weight_decay * lr * rule.lr_scale;
}

/// Applies one AdamW update to a segment whose state is exp_avg, exp_avg_sq.
void adamw_update(Segment& segment, double lr, double decay, double eps, int64_t step,
                  const Tensor& grad_scale_1);

/// Makes an optimizer of each kind.
template <Decay decay>
std::unique_ptr<Optimizer> make_kind(const AdamWKind<decay>& config, Segments segments);
template <Decay decay>
std::unique_ptr<Optimizer> make_kind(const LionKind<decay>& config, Segments segments);
std::unique_ptr<Optimizer> make_kind(const SgdConfig& config, Segments segments);
std::unique_ptr<Optimizer> make_kind(const MuonConfig& config, Segments segments);
std::unique_ptr<Optimizer> make_kind(const DefinedOptimizerConfig& config, Segments segments);

}  // namespace tycho
