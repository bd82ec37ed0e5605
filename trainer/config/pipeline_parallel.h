// The rules between the keys of a pipeline and what its stages share: the model's blocks.
#pragma once
#include "trainer/base/config_problems.h"
#include "trainer/config/train_config.h"

namespace tycho {

/// Reports numbers of stages and parts that the model cannot be cut into, and what does not work on stages.
/// Which blocks stay together, layout/stages.h knows.
void check_pipeline(const TrainConfig& config, ConfigProblems& problems);

}  // namespace tycho
