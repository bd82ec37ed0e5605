// How long a run is, in the steps that it will have done.
#pragma once
#include <string>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/config/run_clock.h"
#include "trainer/config/train_config.h"
#include "trainer/metrics/step_metrics.h"

namespace tycho {

/// Clock of a run that goes on from a checkpoint with this recipe.
RunClock clock_from(const CheckpointInfo& checkpoint, const TrainConfig& config);

/// Factor by which the number of steps for some tokens grows at a start from this checkpoint.
double step_growth(const CheckpointInfo& checkpoint, const TrainConfig& config);

/// Fills total_steps, total_tokens and until_step. `until`: a duration at which this process leaves the run,
/// or "".
void set_length(RunInfo& info, const TrainConfig& config, const std::string& until, const RunClock& clock);

}  // namespace tycho
