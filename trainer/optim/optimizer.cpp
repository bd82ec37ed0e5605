// The choice of the optimizer.
#include "trainer/optim/optimizer.h"

#include "trainer/optim/kinds.h"

namespace tycho {

double decay_share(const ParamRule& rule, double lr, double peak, bool decoupled) {
  return decoupled ? rule.weight_decay * (lr / peak) : rule.weight_decay * lr * rule.lr_scale;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, std::vector<FlatUnit>& units,
                                          const ParamRules& rules, uint64_t seed) {
  struct Make {
    Segments segments;
    std::unique_ptr<Optimizer> operator()(const AdamWConfig& c) { return make_adamw(c, std::move(segments)); }
    std::unique_ptr<Optimizer> operator()(const DecoupledAdamWConfig& c) {
      return make_adamw(c, std::move(segments));
    }
    std::unique_ptr<Optimizer> operator()(const LionConfig& c) { return make_lion(c, std::move(segments)); }
    std::unique_ptr<Optimizer> operator()(const DecoupledLionConfig& c) {
      return make_lion(c, std::move(segments));
    }
    std::unique_ptr<Optimizer> operator()(const SgdConfig& c) { return make_sgd(c, std::move(segments)); }
    std::unique_ptr<Optimizer> operator()(const MuonConfig& c) { return make_muon(c, std::move(segments)); }
  };
  return std::visit(Make{make_segments(config, units, rules, seed)}, config.value);
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, std::vector<FlatUnit>& units) {
  std::vector<UnitSpec> specs;
  for (const FlatUnit& unit : units) specs.push_back(unit.spec());
  return make_optimizer(config, units, param_rules(config, {}, specs));
}

}  // namespace tycho
