// Finds files as a run does, and reads none but for the beginning that says what it is.
#include "trainer/plan/unread_files.h"

#include <filesystem>
#include <string>

#include "trainer/base/error.h"
#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/loader/text_dataset.h"

namespace tycho {

std::vector<ConfigProblem> unread_files(const TrainConfig& config) {
  std::vector<ConfigProblem> unread;
  const auto add = [&](const auto& data, const std::string& path, const auto& find) {
    std::error_code error;
    if (!data.remote.empty() || !std::filesystem::is_directory(data.path, error)) return;
    try {
      for (const std::string& note : find(data).notes) unread.push_back({path + ".path", note});
    } catch (const Error& problem) {
      unread.push_back({path + ".path", problem.what()});
    }
  };
  const auto look = [&](const DataConfig& data, const std::string& path) {
    if (data.is<TextConfig>()) add(data.as<TextConfig>(), path, text_files);
    if (data.is<ChatConfig>()) add(data.as<ChatConfig>(), path, chat_files);
  };
  look(config.train_data, "train_data");
  for (const auto& [name, data] : config.eval_data) look(data, "eval_data." + name);
  for (size_t i = 0; i < config.data_stages.size(); ++i)
    look(config.data_stages[i].data, fmt::format("data_stages[{}].data", i + 1));
  return unread;
}

}  // namespace tycho
