// The choice of the optimizer.
#include "trainer/optim/make_optimizer.h"

#include "trainer/optim/kinds.h"

namespace tycho {

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
