// Which data a run trains on at a step: train_data, and then each of data_stages from its start on.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/recipe/data.h"
#include "trainer/recipe/run_clock.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Returns the stage of the step after `steps_done` steps: 0 for train_data, i for data_stages[i - 1].
int64_t stage_at(const TrainConfig& config, int64_t steps_done, int64_t total_steps,
                 const RunClock& clock = {});
const DataConfig& stage_data(const TrainConfig& config, int64_t stage);

/// A data set of a recipe, and its key there ("eval_data.val").
struct KeyedData {
  std::string key;
  const DataConfig& data;
};
/// Returns the data that a run trains on first, that it changes to, and that it is evaluated on. The recipe
/// must outlive the result.
std::vector<KeyedData> all_data(const TrainConfig& config);

/// Reports stages that are out of order, that start with the run or after its end, and invalid data.
void check_stages(const TrainConfig& config, ConfigProblems& problems);

}  // namespace tycho
