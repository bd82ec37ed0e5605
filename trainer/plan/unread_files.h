// Files of a recipe's folders of texts and conversations that a run would not read.
#pragma once
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Returns warnings about files in local folders that a run would not read, and about problems of these
/// folders.
std::vector<ConfigProblem> unread_files(const TrainConfig& config);

}  // namespace tycho
