// The config of a run as JSON: its schema, reading with checks, writing, identity, differences. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Describes every knob of a run in the form of schema.h.
Json train_config_schema();

/// Writes every field, defaults included.
Json config_to_json(const TrainConfig& config);

/// Reads a config. Appends problems of single values to `problems`; when there are none, appends those of
/// check_config.
TrainConfig read_config(const Json& json, std::vector<ConfigProblem>& problems);
/// Reads a config. Throws Error (kRecipe) that lists all problems.
TrainConfig read_config_or_fail(const Json& json);
/// Throws Error with the exit code `code` that lists all problems, if there are any. `place` names the config
/// they belong to.
void require_no_problems(const std::vector<ConfigProblem>& problems, ExitCode code,
                         const std::string& place = "config");
/// Checks all rules of a config on `num_ranks` ranks. Throws Error: kRecipe when a rule fails without the
/// ranks too, else kTopology.
void require_valid(const TrainConfig& config, int64_t num_ranks);

/// Purpose for which a trained model is loaded.
enum class TrainedUse { kModel, kEvaluation };
/// Reads the recipe of a checkpoint in order to use its model. Checks only what that needs (the model, its
/// sequences and numbers; for an evaluation also batches and data), so that a checkpoint stays usable when
/// another part of its recipe breaks a newer rule. Throws Error (kRecipe) that names `checkpoint`.
TrainConfig read_trained_config(const Json& recipe, TrainedUse use, const std::string& checkpoint);

/// Returns XXH3-128 of every key that affects the numbers of a run: all but run_name, run_dir, resume,
/// threads, parallel, attention, eval_data, eval, ckpt and log. `resolved` has every key, in the form of
/// config_to_json; the order of keys and the spelling of numbers do not matter.
std::string config_hash(const Json& resolved);

/// One value that differs. The values are JSON; "" where one side lacks the key.
struct ConfigDifference {
  std::string path;
  std::string old_value;
  std::string new_value;
};
/// Returns every leaf that differs, in the order of `a`, followed by the leaves that only `b` has.
std::vector<ConfigDifference> diff_configs(const Json& a, const Json& b);

}  // namespace tycho
