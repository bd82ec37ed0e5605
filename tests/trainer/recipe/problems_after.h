// What check_config says of a config that a test has changed.
#pragma once
#include <functional>
#include <string>

#include "trainer/recipe/config_rules.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// "path: message" of what check_config finds after `change`, one per line.
inline std::string problems_after(const std::function<void(TrainConfig&)>& change, int64_t num_ranks = 1) {
  TrainConfig config;
  config.train_data.value = MdsConfig{.local_dir = "data"};
  change(config);
  std::string text;
  for (const ConfigProblem& problem : check_config(config, num_ranks)) {
    text += (text.empty() ? "" : "\n") + problem.path + ": " + problem.message;
  }
  return text;
}

}  // namespace tycho
