// The choice of the optimizer.
#include "trainer/optim/optimizer.h"

#include "trainer/optim/kinds.h"

namespace tycho {

double decay_share(const ParamRule& rule, double lr, double peak, bool decoupled) {
  return decoupled ? rule.weight_decay * (lr / peak) : rule.weight_decay * lr * rule.lr_scale;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, std::vector<FlatUnit>& units,
                                          const ParamRules& rules, uint64_t seed) {
  Segments segments = make_segments(config, units, rules, seed);
  return std::visit([&](const auto& kind) { return make_kind(kind, std::move(segments)); }, config.value);
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, std::vector<FlatUnit>& units) {
  std::vector<UnitSpec> specs;
  for (const FlatUnit& unit : units) specs.push_back(unit.spec());
  return make_optimizer(config, units, param_rules(config, {}, specs));
}

}  // namespace tycho
