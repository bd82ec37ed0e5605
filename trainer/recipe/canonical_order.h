// What a recipe needs so that its sums do not depend on the number of ranks: parallel.reduce = "canonical".
#pragma once
#include <optional>

#include "trainer/base/config_problems.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Reports micro-batches that depend on the number of ranks, numbers of ranks without whole subtrees, and
/// keys whose sums depend on the ranks. Requires a global batch of whole sequences and, when num_ranks is
/// given, a valid mesh.
void check_canonical_order(const TrainConfig& config, std::optional<int64_t> num_ranks,
                           ConfigProblems& problems);

}  // namespace tycho
