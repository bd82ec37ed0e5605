// The rules between the keys of a recipe.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Checks the rules between fields (heads and kv_heads, batch sizes, sequence lengths). Returns the problems.
/// `num_ranks` is that of the run; without it, batches are checked for one rank.
std::vector<ConfigProblem> check_config(const TrainConfig& config,
                                        std::optional<int64_t> num_ranks = std::nullopt);
/// The subset of these rules needed to load a model (check_model), or to evaluate it (check_evaluation).
std::vector<ConfigProblem> check_model(const TrainConfig& config);
std::vector<ConfigProblem> check_evaluation(const TrainConfig& config);

}  // namespace tycho
