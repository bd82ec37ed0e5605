// Counts GPUs without the CUDA libraries, which a define phase never loads.
#include "host/machine.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

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

std::string gpu_model(const std::string& root) {
  std::error_code error;
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/proc/driver/nvidia/gpus", error))
    folders.push_back(entry.path());
  if (folders.empty()) return "";
  std::ifstream in(*std::min_element(folders.begin(), folders.end()) + "/information");
  for (std::string line; std::getline(in, line);) {
    constexpr std::string_view kKey = "Model:";
    if (!line.starts_with(kKey)) continue;
    const size_t begin = line.find_first_not_of(" \t", kKey.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
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
