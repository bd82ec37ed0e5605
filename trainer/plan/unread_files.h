// Files of a recipe's folders of texts and conversations that a run would not read.
#pragma once
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/config/train_config.h"

namespace tycho {

/// What a run would leave out of the folders that are on this machine, and what is wrong with those folders,
/// as warnings.
std::vector<ConfigProblem> unread_files(const TrainConfig& config);

}  // namespace tycho
