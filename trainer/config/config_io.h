// The config of a run as JSON: its schema, reading with checks, writing, identity, differences. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/config/train_config.h"

namespace tycho {

/// Every knob of a run, as schema.h describes it.
Json train_config_schema();

/// Every field, defaults included.
Json config_to_json(const TrainConfig& config);

/// Reads a config. What is wrong with single values is appended to `problems`; when nothing is, what
/// check_config finds.
TrainConfig read_config(const Json& json, std::vector<ConfigProblem>& problems);
/// The same for a caller that cannot go on: throws Error (kRecipe) that lists all problems.
TrainConfig read_config_or_fail(const Json& json);
/// Throws Error that lists all problems, when there are any. `place`: whose they are.
void require_no_problems(const std::vector<ConfigProblem>& problems, ExitCode code,
                         const std::string& place = "config");
/// The same for all rules of a config on `num_ranks` ranks: kRecipe when it breaks one without ranks, too,
/// else kTopology.
void require_valid(const TrainConfig& config, int64_t num_ranks);

/// What a trained model is wanted for.
enum class TrainedUse { kModel, kEvaluation };
/// Reads the recipe of a checkpoint to use what it trained. Only what that needs is checked (the model, its
/// sequences and numbers; for an evaluation batches and data too): a checkpoint stays usable when another
/// part of its recipe breaks a rule that came later. Throws Error (kRecipe) that names `checkpoint`.
TrainConfig read_trained_config(const Json& recipe, TrainedUse use, const std::string& checkpoint);

/// XXH3-128 of what decides the numbers of a run: run_name, run_dir, resume, threads, parallel, eval_data,
/// eval, ckpt and log are left out. `resolved` has every key, as config_to_json writes it; the order of keys
/// and the spelling of numbers do not matter.
std::string config_hash(const Json& resolved);

/// One value that differs. The texts are JSON; "" where one side has no such key.
struct ConfigDifference {
  std::string path;
  std::string old_value;
  std::string new_value;
};
/// Every leaf that differs, in the order of `a`, then what only `b` has.
std::vector<ConfigDifference> diff_configs(const Json& a, const Json& b);

}  // namespace tycho
