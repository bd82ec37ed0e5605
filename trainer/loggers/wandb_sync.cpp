// Catches a server up with the folder of a run.
#include "trainer/loggers/wandb_sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/loggers/recorded_numbers.h"
#include "trainer/loggers/wandb_online.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

/// Returns the recipe's t.log.wandb.
WandbSinkConfig wandb_sink_of(const std::string& run_dir) {
  const std::string path = run_dir + "/recipe.json";
  const Json recipe = fs::exists(path) ? Json::parse(read_file(path), nullptr, false) : Json();
  const Json::json_pointer sinks("/log/sinks");
  if (recipe.is_object() && recipe.contains(sinks))
    for (const Json& sink : recipe.at(sinks))
      if (sink.is_object() && sink.value("kind", "") == "wandb") {
        WandbSinkConfig config;
        config.entity = sink.value("entity", "");
        config.dir = sink.value("dir", "");
        const std::string names = sink.value("names", "tycho");
        for (const auto& [name, value] : enum_names(MetricNames()))
          if (names == name) config.names = value;
        return config;
      }
  fail(ExitCode::kUnusable, "[log] expected a run with t.log.wandb in log.sinks, got {}", run_dir);
}

/// Returns what names of other systems are made from.
RunInfo run_info_of(const std::string& run_dir) {
  RunInfo info;
  std::ifstream file(run_dir + "/events.jsonl");
  for (std::string text; std::getline(file, text);) {
    if (text.find("\"run_start\"") == std::string::npos) continue;
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object() || line.value("kind", "") != "run_start" || !line.contains("facts")) continue;
    const Json& facts = line["facts"];
    info.num_ranks = facts.value("num_ranks", int64_t{1});
    info.total_steps = facts.value("total_steps", int64_t{0});
    info.total_tokens = facts.value("total_tokens", int64_t{0});
  }
  return info;
}

/// Returns the rows of metrics.jsonl after a step, which a kill kept from the run's file.
std::vector<WandbStepEntry> lost_rows(const std::string& run_dir, const WandbEnd& end, MetricNames names) {
  std::vector<WandbRow> rows;
  for (MetricRecord& record : recorded_numbers(run_dir, end.step + 1, std::numeric_limits<int64_t>::max(),
                                               run_info_of(run_dir), names)) {
    if (rows.empty() || rows.back().numbers.step != record.step) {
      rows.push_back({std::move(record)});
      continue;
    }
    for (auto& number : record.numbers) rows.back().numbers.numbers.push_back(std::move(number));
  }
  std::vector<WandbStepEntry> entries;
  for (const WandbRow& row : rows) {
    const double runtime_s = end.runtime_s + (row.numbers.time_s - rows.front().numbers.time_s);
    entries.push_back(std::get<WandbStepEntry>(read_wandb_entry(wandb_history_message(1, row, runtime_s))));
  }
  return entries;
}

/// Repeats a call that fails where that may help.
template <class Call>
void tried(const WandbServer& server, const Call& call) {
  constexpr int kTries = 5;
  double wait_s = 1;
  for (int i = 1;; ++i, wait_s *= 2) {
    try {
      return call();
    } catch (const Error& error) {
      if (i == kTries || error.code() != ExitCode::kStorage) throw;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(std::max(wait_s, server.wait_s())));
  }
}

}  // namespace

std::string wandb_run_id(const std::string& run_dir) {
  const std::string path = run_dir + kWandbIdFile;
  std::string id = read_file(path);
  id.erase(id.find_last_not_of(" \n") + 1);
  const bool good = !id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_';
  });
  if (!good)
    fail(ExitCode::kStorage, "[wandb] {} does not hold an id of W&B; remove it, or write the id into it",
         path);
  return id;
}

std::string wandb_dir(const WandbSinkConfig& config, const std::string& run_dir) {
  return (config.dir.empty() ? run_dir : config.dir) + "/wandb";
}

WandbSynced sync_wandb(const std::string& run_dir) {
  const WandbSinkConfig config = wandb_sink_of(run_dir);
  if (!fs::exists(run_dir + kWandbIdFile))
    fail(ExitCode::kUnusable, "[log] {} has no step yet that could be sent", run_dir);
  const std::vector<std::string> files = wandb_files(wandb_dir(config, run_dir), wandb_run_id(run_dir));
  const WandbEnd end = end_of_wandb_files(files);
  WandbServer server(find_wandb_settings(config.entity), WandbPatience().timeout_s);
  WandbUpload upload(server, run_dir, files);
  tried(server, [&] { upload.send(); });
  const std::vector<WandbStepEntry> lost = lost_rows(run_dir, end, config.names);
  tried(server, [&] { upload.send_rows(lost); });
  tried(server, [&] { upload.end(); });
  // The mark of the official client: `wandb sync` passes over these.
  for (const std::string& file : files)
    if (file.ends_with(".wandb")) real_files().append(file + ".synced")->close();
  return {upload.num_sent_rows(), server.page()};
}

}  // namespace tycho
