// The rules between parallel.tp and what its ranks share: the model's heads, and what needs whole
// parameters.
#pragma once
#include <cstdint>

#include "trainer/base/config_problems.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Reports a tp that cannot share the model, with the sizes that can, and the meshes of `num_ranks` ranks
/// nearest to the requested one.
void check_tensor_parallel(const TrainConfig& config, int64_t num_ranks, ConfigProblems& problems);

}  // namespace tycho
