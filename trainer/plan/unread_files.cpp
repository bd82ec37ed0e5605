// Finds files as a run does, and reads none but for the beginning that says what it is.
#include "trainer/plan/unread_files.h"

#include <filesystem>
#include <string>

#include "trainer/base/error.h"
#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/loader/text_dataset.h"
#include "trainer/recipe/data_stages.h"

namespace tycho {
namespace {

/// Does nothing for kinds of data whose files are not searched for.
template <class Config>
void add_unread(const Config& data, const std::string& path, std::vector<ConfigProblem>& unread) {
  if constexpr (requires { input_files(data); }) {
    std::error_code error;
    if (!data.remote.empty() || !std::filesystem::is_directory(data.path, error)) return;
    try {
      for (const std::string& note : input_files(data).notes) unread.push_back({path, note});
    } catch (const Error& problem) {
      unread.push_back({path, problem.what()});
    }
  }
}

}  // namespace

std::vector<ConfigProblem> unread_files(const TrainConfig& config) {
  std::vector<ConfigProblem> unread;
  for (const auto& [key, data] : all_data(config))
    std::visit([&](const auto& kind) { add_unread(kind, key + ".path", unread); }, data.value);
  return unread;
}

}  // namespace tycho
