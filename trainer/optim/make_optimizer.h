// Makes the optimizer that a recipe names.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/layout/param_rules.h"
#include "trainer/optim/optimizer.h"
#include "trainer/recipe/optim.h"
#include "trainer/sharding/owned_range.h"

namespace tycho {

/// Makes an optimizer for `ranges`, this rank's part of each unit of a model, in forward order. `seed` is
/// that of stochastic rounding. `owners` are the ranks with parts of the same parameters, and must outlive
/// the optimizer; null when this rank has all of each. Muon gathers the parts of a matrix: its step() is
/// collective on `owners`. Throws Error (kFailure) for a part of a parameter when the update needs the whole:
/// stochastic rounding, and matrices of Muon without owners.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config,
                                          const std::vector<OwnedRange>& ranges, const ParamRules& rules,
                                          uint64_t seed = 0, Communicator* owners = nullptr);
/// Same as above, without parameter groups.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config,
                                          const std::vector<OwnedRange>& ranges);

}  // namespace tycho
