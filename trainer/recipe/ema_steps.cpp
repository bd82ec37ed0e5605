// Composer's formula (composer/algorithms/ema): smoothing = exp(-log(2) * update_interval / half_life).
#include "trainer/recipe/ema_steps.h"

#include <algorithm>
#include <cmath>

namespace tycho {
namespace {

bool any_evaluated(const Json& updates) {
  return std::any_of(updates.begin(), updates.end(),
                     [](const Json& update) { return update.contains("eval_weights"); });
}

}  // namespace

EmaSteps ema_steps(const TrainConfig& config, int64_t total_steps, int64_t num_samples,
                   const RunClock& clock) {
  const EmaConfig& ema = config.ema;
  const auto steps = [&](const Duration& length) {
    return in_steps(length, config, total_steps, num_samples);
  };
  EmaSteps result;
  result.every = std::max(1.0, steps(ema.every));
  result.decay = ema.decay ? *ema.decay : std::exp2(-result.every / steps(*ema.half_life));
  const double start = step_at(ema.start, config, total_steps, num_samples, clock);
  result.start = std::max<int64_t>(1, whole_steps(std::max(0.0, start)));
  result.lead = clock_lead(ema.every.unit, config, clock);
  return result;
}

bool uses_ema(const Json& recipe) {
  const Json ema = recipe.value("ema", Json::object());
  return !ema.value("half_life", Json()).is_null() || !ema.value("decay", Json()).is_null();
}

bool keeps_average(const TrainConfig& config) {
  return config.ema.is_used() || has_eval_weights(config.optimizer);
}

bool keeps_average(const Json& recipe) { return uses_ema(recipe) || has_eval_weights(recipe); }

bool has_eval_weights(const OptimizerConfig& optimizer) {
  const auto* const defined = std::get_if<DefinedOptimizerConfig>(&optimizer.value);
  return defined != nullptr && any_evaluated(defined->updates);
}

bool has_eval_weights(const Json& recipe) {
  const Json optimizer = recipe.value("optimizer", Json::object());
  return any_evaluated(optimizer.value("updates", Json::array()));
}

bool evaluates_ema(const TrainConfig& config) {
  const bool evaluates = !config.eval_data.empty() || !config.icl.tasks.empty();
  return keeps_average(config) && config.ema.evaluate && evaluates;
}

void check_ema(const TrainConfig& config, ConfigProblems& problems) {
  const EmaConfig& ema = config.ema;
  constexpr const char* kWithout = "without ema.half_life or ema.decay";
  problems.idle("ema.start", ema.start != EmaConfig().start, ema.is_used(), kWithout);
  problems.idle("ema.every", ema.every != EmaConfig().every, ema.is_used(), kWithout);
  problems.idle("ema.evaluate", !ema.evaluate, ema.is_used(), kWithout);
  if (ema.is_used() && has_eval_weights(config.optimizer))
    problems.add(ema.decay ? "ema.decay" : "ema.half_life",
                 "evaluations use the eval_weights of {} already; remove one of them",
                 config.optimizer.kind());
  if (ema.half_life && ema.decay)
    problems.add("ema.decay", "and ema.half_life both set how fast the average moves; remove one of them");
  problems.within_run("ema.start", ema.start);
  problems.within_run("ema.every", ema.every);
  bool in_epochs =
      config.max_duration.unit == DurationUnit::kEpoch;  // how long those are, only the data tells
  for (const Duration& length : {ema.start, ema.every, ema.half_life.value_or(ema.every)})
    in_epochs |= length.unit == DurationUnit::kEpoch;
  if (!ema.is_used() || in_epochs || counts_without_padding(config)) return;
  const int64_t steps = total_steps(config, 0);
  const EmaSteps ema_in_steps = ema_steps(config, steps, 0);
  const double last_update = std::floor(static_cast<double>(steps) / ema_in_steps.every) * ema_in_steps.every;
  if (last_update < static_cast<double>(ema_in_steps.start))
    problems.add(ema.start.value > 0 ? "ema.start" : "ema.every",
                 "an average that begins at {} and is updated every {} has no update in a run of {}",
                 ema.start.str(), ema.every.str(), config.max_duration.str());
}

}  // namespace tycho
