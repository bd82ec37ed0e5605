// Rules by which a recipe shards the parameters of its model. Torch-free.
#pragma once
#include <cstdint>

#include "trainer/layout/model_layout.h"
#include "trainer/layout/unit_shards.h"
#include "trainer/recipe/parallel.h"

namespace tycho {

/// Returns the rules for a run of num_ranks that check() passed, each rank with `micro_batches` in a step.
ShardRules shard_rules(const ParallelConfig& parallel, const ModelLayout& model, int64_t num_ranks,
                       int64_t micro_batches);

}  // namespace tycho
