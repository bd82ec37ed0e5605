// Where a run begins: fresh, or at a checkpoint.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/config.h"

namespace tycho {

/// Checkpoints that a run may begin from, best first; empty for a fresh start.
/// resume = auto: those of the run folder. Folders without a readable checkpoint where some are expected are
/// an Error (kUnusable), never a fresh start. none: nothing. A path: that checkpoint alone.
std::vector<CheckpointInfo> resume_candidates(const TrainConfig& config, const std::string& run_dir);

/// What differs between the recipe of a checkpoint and this one, as a table for people; "" when nothing that
/// matters does. The recipe wins for everything but the state itself.
std::string recipe_conflicts(const Json& checkpoint_recipe, const Json& recipe);

}  // namespace tycho
