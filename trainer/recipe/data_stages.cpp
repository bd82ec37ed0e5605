// A stage begins with the first step at or after its start.
#include "trainer/recipe/data_stages.h"

namespace tycho {
namespace {

int64_t first_step(const TrainConfig& config, const DataStageConfig& stage, int64_t total_steps,
                   const RunClock& clock = {}) {
  return whole_steps(step_at(stage.start, config, total_steps, 0, clock));
}

}  // namespace

int64_t stage_at(const TrainConfig& config, int64_t steps_done, int64_t total_steps, const RunClock& clock) {
  int64_t stage = 0;
  for (const DataStageConfig& next : config.data_stages) {
    if (first_step(config, next, total_steps, clock) > steps_done) break;
    ++stage;
  }
  return stage;
}

const DataConfig& stage_data(const TrainConfig& config, int64_t stage) {
  return stage == 0 ? config.train_data : config.data_stages[static_cast<size_t>(stage - 1)].data;
}

std::vector<KeyedData> all_data(const TrainConfig& config) {
  std::vector<KeyedData> all = {{"train_data", config.train_data}};
  for (size_t i = 0; i < config.data_stages.size(); ++i)
    all.push_back({fmt::format("data_stages[{}].data", i + 1), config.data_stages[i].data});
  for (const auto& [name, data] : config.eval_data) all.push_back({"eval_data." + name, data});
  return all;
}

void check_stages(const TrainConfig& config, ConfigProblems& problems) {
  if (config.data_stages.empty()) return;
  if (config.max_duration.unit == DurationUnit::kEpoch)
    return problems.add("max_duration",
                        "{} counts epochs, which stages of data have of their own; write ba or tok",
                        config.max_duration.str());
  const int64_t steps = total_steps(config, 0);
  int64_t before = 0;
  for (size_t i = 0; i < config.data_stages.size(); ++i) {
    const DataStageConfig& stage = config.data_stages[i];
    const std::string path = fmt::format("data_stages[{}]", i + 1);
    const int64_t first = first_step(config, stage, steps);
    if (first <= before)
      problems.add(path + ".start", "{} is not after the start of {}", stage.start.str(),
                   i == 0 ? "the run, whose data is train_data" : "the stage before it");
    if (first >= steps)
      problems.add(path + ".start", "{} is at the end of the run or later: max_duration is {}",
                   stage.start.str(), config.max_duration.str());
    before = first;
    check(stage.data, path + ".data", config.model.vocab_size(), !config.tokenizer.empty(), problems);
  }
}

}  // namespace tycho
