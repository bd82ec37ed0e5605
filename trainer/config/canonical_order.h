// What a recipe needs so that its sums do not depend on the number of ranks: parallel.reduce = "canonical".
#pragma once
#include <optional>

#include "trainer/base/config_problems.h"
#include "trainer/config/train_config.h"

namespace tycho {

/// Reports micro-batches that another number of ranks would cut differently, numbers of ranks that do not
/// have whole subtrees, and keys whose sums depend on the ranks. Of a config whose batch is whole sequences
/// and whose mesh can be, when the number of ranks is known.
void check_canonical_order(const TrainConfig& config, std::optional<int64_t> num_ranks,
                           ConfigProblems& problems);

}  // namespace tycho
