// The optimizer's settings for each parameter: learning rate, decay, betas, or frozen. Torch-free.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/layout/param_spec.h"
#include "trainer/recipe/optim.h"
#include "trainer/recipe/state_spec.h"

namespace tycho {

struct ParamRule {
  double lr_scale = 1;      // factor of the optimizer's lr
  double weight_decay = 0;  // 0 when the mask excludes the parameter
  std::array<double, 2> betas = {0, 0};
  bool frozen = false;
  bool hidden_matrix = false;  // a matrix of a block: neither embedding nor head
  bool operator==(const ParamRule&) const = default;
};

/// Rules by unit, then in the order of its spec.
using ParamRules = std::vector<std::vector<ParamRule>>;

/// Returns the rule of each parameter of `units`, all units of a model in forward order. Throws Error
/// (kRecipe) that lists param_group_problems.
ParamRules param_rules(const OptimizerConfig& optimizer, const std::vector<ParamGroupConfig>& groups,
                       const std::vector<UnitSpec>& units);

/// Returns the units with frozen parameters marked.
std::vector<UnitSpec> with_frozen(std::vector<UnitSpec> units, const ParamRules& rules);

/// Returns groups that match nothing, are not regular expressions, or ask for what the optimizer cannot do.
std::vector<ConfigProblem> param_group_problems(const OptimizerConfig& optimizer,
                                                const std::vector<ParamGroupConfig>& groups,
                                                const std::vector<UnitSpec>& units);

/// Returns the optimizer's state of a parameter: "exp_avg", "exp_avg_sq" like torch.optim.AdamW,
/// "momentum_buffer" like SGD and Muon. Empty for a frozen parameter. Shapes are those for the whole
/// parameter.
std::vector<StateSpec> state_specs(const OptimizerConfig& optimizer, const ParamRule& rule,
                                   const ParamSpec& param);

}  // namespace tycho
