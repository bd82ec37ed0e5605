// The learning rate over time, as a pure function of the step.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/base/duration.h"
#include "trainer/recipe/run_clock.h"
#include "trainer/recipe/schedules.h"
#include "trainer/recipe/step_tokens.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// A schedule with its lengths in steps.
struct Schedule {
  SchedulerConfig config;
  double warmup = 0;         // W: steps before it are warm-up
  double warmup_length = 0;  // divisor of the warm-up; differs from W only when compat = composer scales it
  double t_max = 0;
  double decay = 0, scale = 0, cooldown = 0;  // wsd; inv_sqrt
  double period = 0;                          // step, exponential
  std::vector<double> milestones, restarts;   // restarts: ends of the cosines, the last one beyond the run
  int64_t total_steps = 0;
  // What is added to the steps that are done, for the clocks that the schedule and its warm-up follow.
  double lead = 0, warmup_lead = 0;
  /// Set when time is measured in tokens that differ from step to step: the tokens of each step, how many
  /// count as one step, and which of the two clocks uses them.
  std::shared_ptr<const StepTokens> step_tokens = nullptr;
  double tokens_per_step = 0;
  bool by_tokens = false, warmup_by_tokens = false;
};

/// A length of a schedule that is a part of the run, and the path of its field.
struct ScheduleLength {
  const char* path;
  Duration value;
};
std::vector<ScheduleLength> schedule_lengths(const SchedulerConfig& scheduler);

/// Returns lengths that do not fit into the run and shares that contradict each other. See in_steps for
/// num_samples.
std::vector<ConfigProblem> schedule_problems(const TrainConfig& config, int64_t total_steps,
                                             int64_t num_samples);

/// Converts the lengths of a config (tokens, samples, epochs, fractions) to steps of the present size; tokens
/// and samples count from `clock`. See step_at for total_steps. Throws Error (kRecipe) with the first of
/// schedule_problems.
Schedule make_schedule(const TrainConfig& config, int64_t total_steps, int64_t num_samples,
                       const RunClock& clock = {});

/// Factor of the peak for the optimizer step that follows s = `steps_done` steps. With W steps of warm-up to
/// a (1, or alpha, alpha_i), p = min(1, (t - W) / (t_max - W)) and floor m = alpha_f:
///   t < W: a t / W.  Then constant a · linear a + (m - a) p · cosine m + (1 - m)(1 + cos(pi p)) / 2
///   polynomial m + (1 - m)(1 - p)^power · multistep gamma^(milestones that t has reached)
///   step gamma^floor(t / step_size) · exponential gamma^(t / decay_period)
///   cosine_restarts the cosine over each interval, whose length is t_mult times that of the one before
///   inv_sqrt d + (1 - d) / sqrt((t - W + t_scale) / t_scale) with d = alpha_f_decay, and over the last
///   t_cooldown a line from there to alpha_f_cooldown
///   fn factors[t] · dynamic 1, to be multiplied by what its function gives
///   wsd 1 until t_decay before t_max, there p = (t - begin) / t_decay and m + (1 - m) times 1 - p,
///   1 - sqrt(p) or the half cosine.
/// t = s + lead, and in warm-up t + 1, so that no step has rate 0. compat: nanotron has t everywhere,
/// composer max(0, t - 1). Where time goes by tokens, t becomes the tokens of so many steps, over
/// tokens_per_step.
double schedule_factor(const Schedule& schedule, int64_t steps_done);

}  // namespace tycho
