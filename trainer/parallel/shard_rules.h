// How a recipe wants the parameters of its model shared. Torch-free.
#pragma once
#include <cstdint>

#include "trainer/layout/model_layout.h"
#include "trainer/layout/unit_shards.h"
#include "trainer/parallel/config.h"

namespace tycho {

/// For a run of num_ranks that check() passed.
ShardRules shard_rules(const ParallelConfig& parallel, const ModelLayout& model, int64_t num_ranks);

}  // namespace tycho
