// The rules between the keys of a pipeline and what its stages share: the model's blocks.
#pragma once
#include "trainer/base/config_problems.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Reports numbers of stages and chunks that the model cannot be cut into, and features that do not work with
/// stages. layout/stages.h decides which blocks stay together.
void check_pipeline(const TrainConfig& config, ConfigProblems& problems);

}  // namespace tycho
