// The moving average of the weights in steps of a run.
#pragma once
#include <cstdint>

#include "trainer/base/config_problems.h"
#include "trainer/base/json.h"
#include "trainer/config/run_clock.h"
#include "trainer/config/train_config.h"

namespace tycho {

struct EmaSteps {
  double decay = 0;   // the share of the average that an update keeps: ema.decay, or 0.5^(every / half_life)
  int64_t start = 1;  // no update before so many steps are done; the first one copies the weights
  double every = 1;   // at least 1
  double lead = 0;    // clock_lead of the unit of `every`
};

/// Of a config whose ema is used. total_steps and num_samples as in in_steps.
EmaSteps ema_steps(const TrainConfig& config, int64_t total_steps, int64_t num_samples,
                   const RunClock& clock = {});
/// EmaConfig::is_used, of a recipe as a run folder or a checkpoint keeps it; those from before ema have none.
bool uses_ema(const Json& recipe);
/// Whether a run evaluates anything, and its average instead of its weights.
bool evaluates_ema(const TrainConfig& config);
/// Reports keys that do nothing or contradict each other, and an average that would never begin.
void check_ema(const TrainConfig& config, ConfigProblems& problems);

}  // namespace tycho
