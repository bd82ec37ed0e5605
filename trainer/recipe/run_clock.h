// The clock of tokens and samples of a run whose steps have not all been of one size.
#pragma once
#include <cstdint>

#include "trainer/base/duration.h"
#include "trainer/base/json.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Point at which the size of a step (global_batch, seq_len) last changed: steps, samples and tokens done by
/// then. Tokens count whole rows. All zero for a run whose steps have one size.
struct RunClock {
  int64_t step = 0, samples = 0, tokens = 0;
  bool operator==(const RunClock&) const = default;
};

/// Returns the tokens of one step of a resolved recipe, counting rows of seq_len.
double tokens_of_step(const Json& recipe);

/// Returns the clock of a run that continues after `step` steps with the step size of `config`. `clock` is
/// the clock up to then, `before` the recipe of the checkpoint.
RunClock clock_after(const RunClock& clock, int64_t step, const Json& before, const TrainConfig& config);

/// Returns by how many steps of the present size the clock of a unit is ahead of the steps done since the
/// clock's start; negative when it is behind. Returns 0 for steps, and for fractions of a run whose length is
/// given in steps.
double clock_lead(DurationUnit unit, const TrainConfig& config, const RunClock& clock);

/// Returns the step at which `done` of the run is done, real-valued. `total_steps` counts all steps as if
/// they had the present size (total_steps()). See in_steps for num_samples.
double step_at(const Duration& done, const TrainConfig& config, int64_t total_steps, int64_t num_samples,
               const RunClock& clock);

/// Returns the step at which the run ends.
int64_t last_step(const TrainConfig& config, int64_t num_samples, const RunClock& clock);

/// Returns the tokens of the first `steps` steps, without padding where it does not count.
int64_t trained_tokens(const TrainConfig& config, int64_t steps, const RunClock& clock = {});

/// Returns true when the step that takes the clock to `now` reaches or passes a multiple of max(every, 1).
/// Both are in steps.
bool passes_on_clock(double now, double every);

}  // namespace tycho
