// The choice of the optimizer.
#include "trainer/optim/optimizer.h"

#include "trainer/optim/kinds.h"

namespace tycho {

double decay_share(const ParamRule& rule, double lr, double peak, bool decoupled) {
  return decoupled ? rule.weight_decay * (lr / peak) : rule.weight_decay * lr * rule.lr_scale;
}

void Optimizer::write_eval_weights(int64_t /*step*/, const std::vector<StateBuffer>& /*average*/) {
  fail(ExitCode::kFailure, "[optim] this optimizer evaluates the weights that it trains");
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config,
                                          const std::vector<OwnedRange>& ranges, const ParamRules& rules,
                                          uint64_t seed, Communicator* owners) {
  Segments segments = make_segments(config, ranges, rules, seed, owners);
  return std::visit([&](const auto& kind) { return make_kind(kind, std::move(segments)); }, config.value);
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config,
                                          const std::vector<OwnedRange>& ranges) {
  std::vector<UnitSpec> specs;
  for (const OwnedRange& range : ranges) specs.push_back(range.layout.spec());
  return make_optimizer(config, ranges, param_rules(config, {}, specs));
}

}  // namespace tycho
