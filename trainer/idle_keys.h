// Keys that would do nothing beside the others. Those of models: models/rules.h.
#pragma once
#include <vector>

#include "trainer/base/config_problem.h"
#include "trainer/config.h"

namespace tycho {

/// Keys that someone set and that nothing reads: errors, because someone meant them. A key counts as set when
/// it is not its default. Each message says what the key needs.
std::vector<ConfigProblem> idle_keys(const TrainConfig& config);

}  // namespace tycho
