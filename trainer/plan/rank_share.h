// A rank's part of a run, and its traffic. Torch-free.
#pragma once
#include <cstdint>

#include "trainer/layout/model_layout.h"
#include "trainer/layout/stages.h"
#include "trainer/layout/unit_shards.h"
#include "trainer/plan/plan.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// A rank's part of a model, and how its ranges are shared.
struct RankShare {
  StagePart part;
  ModelLayout layout;  // of its index along tp and its stage
  ShardRules rules;
};

/// Sets the memory of the rank that takes most, and its stage along pp. `whole` is the model's layout.
/// Throws Error (kUsage) where the GPU cannot compute the gradient of the model's attention.
void add_memory(const TrainConfig& config, const ModelLayout& whole, const PlanDevices& devices, Plan& plan);
/// Sets the mesh, and the bytes that such a rank receives in a step. Call after add_memory, with the number
/// of micro-batches set.
void add_traffic(const TrainConfig& config, const ModelLayout& whole, int64_t num_ranks, Plan& plan);

}  // namespace tycho
