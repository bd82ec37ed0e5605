// The clock of tokens and samples of a run whose steps have not all been of one size.
#pragma once
#include <cstdint>

#include "trainer/base/duration.h"
#include "trainer/base/json.h"
#include "trainer/config/train_config.h"

namespace tycho {

/// Point where the size of a step (global_batch, seq_len) changed last: steps, samples and tokens that were
/// done then. Tokens are those of whole rows. Zeros for a run whose steps have one size.
struct RunClock {
  int64_t step = 0, samples = 0, tokens = 0;
  bool operator==(const RunClock&) const = default;
};

/// Tokens of a step of a resolved recipe, in rows of seq_len.
double tokens_of_step(const Json& recipe);

/// Clock of a run that goes on after `step` steps with the steps of `config`, when it was `clock` so far
/// and the steps were those of `before`, the recipe of the checkpoint.
RunClock clock_after(const RunClock& clock, int64_t step, const Json& before, const TrainConfig& config);

/// Steps of the present size by which the clock of a unit is ahead of the steps that are done, from the start
/// of the clock on; below 0 when it is behind. 0 for steps, and for shares of a run that is as long as so
/// many steps.
double clock_lead(DurationUnit unit, const TrainConfig& config, const RunClock& clock);

/// Step at which so much of the run is done, real-valued. `total_steps`: all steps of a run whose steps
/// have the present size (total_steps()); num_samples as in in_steps.
double step_at(const Duration& done, const TrainConfig& config, int64_t total_steps, int64_t num_samples,
               const RunClock& clock);

/// Step at which the run ends.
int64_t last_step(const TrainConfig& config, int64_t num_samples, const RunClock& clock);

/// Tokens of the first so many steps, without padding where it does not count.
int64_t trained_tokens(const TrainConfig& config, int64_t steps, const RunClock& clock = {});

/// True when a whole multiple of `every`, in steps, or of 1 when that is less, is reached or passed by the
/// step at which the clock of its unit is `now`.
bool passes_on_clock(double now, double every);

}  // namespace tycho
