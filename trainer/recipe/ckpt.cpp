// Which places can hold checkpoints, told without a request to them.
#include "trainer/recipe/ckpt.h"

#include "trainer/base/config_problems.h"
#include "trainer/recipe/remote_uri.h"
#include "trainer/recipe/run_name.h"

namespace tycho {
namespace {

/// Returns true for a place that objects can be written to; https:// only where it is Azure's.
bool is_writable(const std::string& place) {
  for (const char* scheme : {"s3://", "gs://", "az://", "file://"})
    if (place.starts_with(scheme)) return true;
  return place.starts_with("https://") && place.find(".blob.core.") != std::string::npos;
}

}  // namespace

void check_checkpoints(const CheckpointConfig& config, ConfigProblems& problems) {
  problems.idle("ckpt.remote_max_lost", config.remote_max_lost != 0, !config.remote.empty(),
                "without ckpt.remote");
  if (config.remote.empty()) return;
  if (has_other_braces(config.remote))
    return problems.add("ckpt.remote", "\"{}\": only {} can be in braces", config.remote, kRunNameMark);
  const std::string place = remote_place(config, "run");
  if (!is_writable(place))
    return problems.add(
        "ckpt.remote",
        "expected s3://BUCKET/PREFIX, az://ACCOUNT/CONTAINER/PREFIX or file:///FOLDER, got "
        "\"{}\": checkpoints cannot be written there. ckpt.remote = nil keeps them in the run's "
        "folder alone",
        config.remote);
  if (const std::string problem = remote_problem(place); !problem.empty())
    problems.add("ckpt.remote", "{}", problem);
}

std::string remote_place(const CheckpointConfig& config, const std::string& run_name) {
  std::string place = with_run_name(config.remote, run_name);
  while (place.size() > 1 && place.back() == '/') place.pop_back();
  return place;
}

}  // namespace tycho
