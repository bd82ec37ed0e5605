// The learning rate over time, as a pure function of the step.
#pragma once
#include <cstdint>

#include "trainer/config.h"

namespace tycho {

/// A schedule with its lengths in steps.
struct Schedule {
  SchedulerConfig config;
  double warmup_steps = 0;
  double decay_steps = 0;  // wsd
  int64_t total_steps = 0;
};

/// Lengths that the config gives in tokens, samples or fractions become steps. Throws Error (kRecipe) when
/// warm-up and decay do not fit into the run.
Schedule make_schedule(const TrainConfig& config, int64_t total_steps, int64_t num_samples);

/// Factor of the peak for the optimizer step that follows `steps_done` steps, W warm-up and T total steps:
///   s < W: (s + 1) / W.  Then with p = (s - W) / (T - W) and floor m:
///   constant 1 · linear m + (1 - m)(1 - p) · cosine m + (1 - m)(1 + cos(pi p)) / 2
///   wsd: 1 until the last D steps, there p = (s - (T - D)) / D and 1 - p, 1 - sqrt(p) or the cosine.
/// p is 0 at its first step and below 1 at the last; after the end it stays at m.
double schedule_factor(const Schedule& schedule, int64_t steps_done);

}  // namespace tycho
