// The length of a run in steps, and its clock.
#pragma once
#include <string>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/metrics/step_metrics.h"
#include "trainer/recipe/run_clock.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Returns the clock of a run that continues from a checkpoint with this recipe.
RunClock clock_from(const CheckpointInfo& checkpoint, const TrainConfig& config);

/// Returns the factor by which the number of steps for a number of tokens grows when a run continues from
/// this checkpoint.
double step_growth(const CheckpointInfo& checkpoint, const TrainConfig& config);

/// Sets total_steps, total_tokens and until_step. `until` is a duration after which this process leaves the
/// run, or "".
void set_length(RunInfo& info, const TrainConfig& config, const std::string& until, const RunClock& clock);

}  // namespace tycho
