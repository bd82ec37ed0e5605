// All durations of one unit are moved by the same number of steps.
#include "trainer/recipe/run_clock.h"

#include <algorithm>
#include <cmath>

#include "trainer/recipe/step_tokens.h"

namespace tycho {
namespace {

struct StepSize {
  int64_t samples, tokens;
  bool operator==(const StepSize&) const = default;
};

StepSize step_size(const Duration& global_batch, int64_t seq_len) {
  const int64_t count = global_batch.count();
  const int64_t samples = global_batch.unit == DurationUnit::kToken ? count / seq_len : count;
  return {samples, samples * seq_len};
}

StepSize step_size(const Json& recipe) {
  return step_size(Duration::parse(recipe.at("global_batch").get<std::string>()),
                   recipe.at("seq_len").get<int64_t>());
}

}  // namespace

double tokens_of_step(const Json& recipe) { return static_cast<double>(step_size(recipe).tokens); }

RunClock clock_after(const RunClock& clock, int64_t step, const Json& before, const TrainConfig& config) {
  const StepSize old = step_size(before);
  if (old == step_size(config.global_batch, config.seq_len) || step == 0) return clock;
  const int64_t steps = step - clock.step;
  return {step, clock.samples + steps * old.samples, clock.tokens + steps * old.tokens};
}

double clock_lead(DurationUnit unit, const TrainConfig& config, const RunClock& clock) {
  if (clock == RunClock()) return 0;
  if (unit == DurationUnit::kFraction) unit = config.max_duration.unit;
  const StepSize now = step_size(config.global_batch, config.seq_len);
  const auto step = static_cast<double>(clock.step);
  // The tokens of each step are those of steps of the present size from the start of the run: a place in the
  // rows is one in them.
  if (unit == DurationUnit::kToken && config.step_tokens) unit = DurationUnit::kSample;
  switch (unit) {
    case DurationUnit::kToken:
      return static_cast<double>(clock.tokens) / static_cast<double>(now.tokens) - step;
    case DurationUnit::kSample:
    case DurationUnit::kEpoch:
      return static_cast<double>(clock.samples) / static_cast<double>(now.samples) - step;
    default: return 0;
  }
}

double step_at(const Duration& done, const TrainConfig& config, int64_t total_steps, int64_t num_samples,
               const RunClock& clock) {
  return in_steps(done, config, total_steps, num_samples) - clock_lead(done.unit, config, clock);
}

int64_t last_step(const TrainConfig& config, int64_t num_samples, const RunClock& clock) {
  return whole_steps(step_at(config.max_duration, config, 0, num_samples, clock));
}

int64_t trained_tokens(const TrainConfig& config, int64_t steps, const RunClock& clock) {
  if (config.step_tokens)
    return std::llround(config.step_tokens->tokens(static_cast<double>(steps) +
                                                   clock_lead(DurationUnit::kToken, config, clock)));
  return clock.tokens + (steps - clock.step) * global_batch_sequences(config) * config.seq_len;
}

bool passes_on_clock(double now, double every) {
  const double steps = std::max(1.0, every);
  return std::floor(now / steps) > std::floor((now - 1) / steps);
}

}  // namespace tycho
