// Where a run begins: fresh, or at a checkpoint.
#include "trainer/resume.h"

#include <fmt/ranges.h>

#include "trainer/base/error.h"
#include "trainer/config_io.h"

namespace tycho {

std::vector<CheckpointInfo> resume_candidates(const TrainConfig& config, const std::string& run_dir) {
  if (config.resume == "none") return {};
  if (config.resume != "auto") return {find_checkpoint(config.resume)};
  std::vector<std::string> broken;
  std::vector<CheckpointInfo> checkpoints = list_checkpoints(run_dir + "/checkpoints", &broken);
  // A first save that was killed leaves a folder without COMMIT: nothing was lost, so that alone is a fresh
  // start.
  if (checkpoints.empty() && !broken.empty())
    fail(ExitCode::kUnusable,
         "[resume] {} has checkpoints, and none can be read:\n  {}\nRepair or remove them, name another one "
         "with resume=PATH, or start over with resume=none",
         run_dir, fmt::join(broken, "\n  "));
  return checkpoints;
}

std::string recipe_conflicts(const Json& checkpoint_recipe, const Json& recipe) {
  const auto what_matters = [](Json json) {
    for (const char* key : {"run_name", "run_dir", "resume", "threads", "device", "log", "ckpt"})
      json.erase(key);
    return json;
  };
  std::string table;
  for (const ConfigDifference& difference :
       diff_configs(what_matters(checkpoint_recipe), what_matters(recipe)))
    table += fmt::format("\n  {:<28} {} -> {}", difference.path, difference.old_value, difference.new_value);
  return table;
}

}  // namespace tycho
