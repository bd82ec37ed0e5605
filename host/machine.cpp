// Counts GPUs without the CUDA libraries, which a define phase never loads.
#include "host/machine.h"

#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace tycho {

std::vector<std::string> visible_gpus() {
  std::vector<std::string> gpus;
  if (const char* given = std::getenv("CUDA_VISIBLE_DEVICES")) {
    std::istringstream text(given);
    for (std::string one; std::getline(text, one, ',') && !one.empty() && one != "-1";) gpus.push_back(one);
    return gpus;
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", error)) {
    static_cast<void>(entry);
    gpus.push_back(std::to_string(gpus.size()));
  }
  return gpus;
}

std::vector<std::string> gpu_sets(int64_t per_trial, int64_t count) {
  const std::vector<std::string> gpus = visible_gpus();
  std::vector<std::string> sets;
  if (per_trial == 0 || static_cast<int64_t>(gpus.size()) < per_trial) return sets;
  for (int64_t i = 0; i < count && (i + 1) * per_trial <= static_cast<int64_t>(gpus.size()); ++i) {
    const auto first = gpus.begin() + i * per_trial;
    sets.push_back(fmt::format("{}", fmt::join(first, first + per_trial, ",")));
  }
  return sets;
}

}  // namespace tycho
