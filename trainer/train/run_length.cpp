// The end lies where the clock of max_duration's unit says.
#include "trainer/train/run_length.h"

#include <algorithm>
#include <cmath>

#include "trainer/state/train_state.h"

namespace tycho {

RunClock clock_from(const CheckpointInfo& checkpoint, const TrainConfig& config) {
  const TrainState state = TrainState::from_json(checkpoint.manifest.at("train_state"));
  return clock_after(state.clock, state.step, checkpoint.manifest.at("recipe"), config);
}

double step_growth(const CheckpointInfo& checkpoint, const TrainConfig& config) {
  const Json& recipe = checkpoint.manifest.at("recipe");
  return tokens_of_step(recipe) / static_cast<double>(global_batch_sequences(config) * config.seq_len);
}

void set_length(RunInfo& info, const TrainConfig& config, const std::string& until, const RunClock& clock) {
  info.total_steps = last_step(config, info.num_samples, clock);
  info.total_tokens = trained_tokens(config, info.total_steps, clock);
  info.until_step.reset();
  if (until.empty()) return;
  const double steps =
      step_at(Duration::parse(until), config, total_steps(config, info.num_samples), info.num_samples, clock);
  const auto step = static_cast<int64_t>(std::ceil(steps));
  if (step < info.total_steps) info.until_step = std::max<int64_t>(step, 1);
}

}  // namespace tycho
