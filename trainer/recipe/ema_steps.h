// The moving average of the weights in steps of a run.
#pragma once
#include <cstdint>

#include "trainer/base/config_problems.h"
#include "trainer/base/json.h"
#include "trainer/recipe/optim.h"
#include "trainer/recipe/run_clock.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

struct EmaSteps {
  double decay = 0;   // share of the average that an update keeps: ema.decay, or 0.5^(every / half_life)
  int64_t start = 1;  // no update before `start` steps are done; the first one copies the weights
  double every = 1;   // at least 1
  double lead = 0;    // clock_lead for the unit of `every`
};

/// Requires that the config's ema is used. See in_steps for total_steps and num_samples.
EmaSteps ema_steps(const TrainConfig& config, int64_t total_steps, int64_t num_samples,
                   const RunClock& clock = {});
/// Returns EmaConfig::is_used for the recipe of a run folder or checkpoint; false for recipes from before ema
/// existed.
bool uses_ema(const Json& recipe);
/// Return true when a run keeps other weights than the trained ones: a moving average, or what an optimizer
/// with eval_weights computes. The recipe of a run folder or checkpoint may be older.
bool keeps_average(const TrainConfig& config);
bool keeps_average(const Json& recipe);
/// Return true when evaluations and exports use weights that the recipe's own optimizer computes: entries of
/// its `updates` have "eval_weights", an elementwise expression of "p", "s.NAME" and scalars other than
/// "h.lr" with the output "p".
bool has_eval_weights(const OptimizerConfig& optimizer);
bool has_eval_weights(const Json& recipe);
/// Returns true when the run evaluates, and evaluates its average instead of its weights.
bool evaluates_ema(const TrainConfig& config);
/// Reports keys without effect or in contradiction, and an average that would never begin.
void check_ema(const TrainConfig& config, ConfigProblems& problems);

}  // namespace tycho
