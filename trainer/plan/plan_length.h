// How long a run is: samples, steps and tokens. Torch-free.
#pragma once
#include "trainer/plan/plan.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Returns a plan that has the parameters and the length alone. Requires a config that check_config passes.
/// Reads no sample where an index says how many there are: each rank of a run calls this before it meets the
/// others, who would not hear why it ended.
Plan plan_length(const TrainConfig& config);

}  // namespace tycho
