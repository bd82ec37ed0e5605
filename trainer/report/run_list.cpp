// Finds run folders and reads the ends of their records.
#include "trainer/report/run_list.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "trainer/base/error.h"
#include "trainer/control/channel.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/line_file.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 3;
constexpr std::streamoff kHeadBytes = 64 << 10, kTailBytes = 1 << 20;

bool is_run(const fs::path& folder) { return fs::is_regular_file(folder / "events.jsonl"); }

/// Calls `take` for the records at the beginning and at the end of a file. Skips torn lines, which do not
/// parse. Records of a short file may be passed twice.
void for_each_end(const fs::path& path, const std::function<void(const Json&)>& take) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return;
  const std::streamoff size = file.tellg();
  const auto read = [&](std::streamoff from, std::streamoff bytes) {
    std::string text(static_cast<size_t>(bytes), '\0');
    file.clear();
    file.seekg(from);
    file.read(text.data(), bytes);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (const Json record = Json::parse(line, nullptr, false); record.is_object()) take(record);
  };
  if (size > kTailBytes) read(0, std::min(size, kHeadBytes));
  read(std::max<std::streamoff>(0, size - kTailBytes), std::min(size, kTailBytes));
}

double number_at(const Json& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_number() ? found->get<double>() : 0;
}

std::string string_at(const Json& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

RunLine line_of(const fs::path& folder) {
  RunLine run;
  run.folder = run.name = folder.string();
  const auto see = [&](const Json& record) {
    run.newest_s = std::max(run.newest_s, number_at(record, "time"));
    run.step = static_cast<int64_t>(number_at(record, "step"));
  };
  for_each_end(folder / "events.jsonl", [&](const Json& record) {
    see(record);
    const std::string kind = string_at(record, "kind");
    if (kind == kNotStarted) return;
    if (kind == "run_end") run.state = string_at(record, "text");
    if (kind != "run_start") return;
    run.state.clear();
    const auto facts = record.find("facts");
    if (facts == record.end() || !facts->is_object()) return;
    if (const std::string name = string_at(*facts, "run_name"); !name.empty()) run.name = name;
    run.total_steps = static_cast<int64_t>(number_at(*facts, "total_steps"));
  });
  for_each_end(folder / "metrics.jsonl", [&](const Json& record) {
    see(record);
    if (record.contains("loss")) run.loss = record["loss"].is_number() ? number_at(record, "loss") : NAN;
  });
  if (is_owned(folder.string()))
    run.state = "running";
  else if (run.state.empty())
    run.state = "killed";
  return run;
}

void find_runs(const fs::path& folder, int depth, std::vector<RunLine>& runs) {
  if (is_run(folder)) {
    runs.push_back(line_of(folder));
    return;
  }
  if (depth == kDeepest) return;
  std::error_code unreadable;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, unreadable))
    if (std::error_code gone; entry.is_directory(gone)) find_runs(entry.path(), depth + 1, runs);
}

}  // namespace

std::vector<RunLine> list_runs(const std::string& folder) {
  std::error_code error;
  if (fs::directory_iterator(folder, error); error)
    fail(ExitCode::kUnusable, "[ls] expected a folder of runs, got {}: {}", folder, error.message());
  std::vector<RunLine> runs;
  find_runs(folder, 0, runs);
  std::stable_sort(runs.begin(), runs.end(),
                   [](const RunLine& a, const RunLine& b) { return a.newest_s > b.newest_s; });
  return runs;
}

std::vector<std::vector<std::string>> run_list_table(const std::vector<RunLine>& runs) {
  std::vector<std::vector<std::string>> rows = {{"run", "state", "step", "loss", "newest record", "folder"}};
  for (const RunLine& run : runs) {
    const auto newest = static_cast<std::time_t>(run.newest_s);
    rows.push_back(
        {printable(run.name, true), printable(run.state, true),
         run.total_steps > 0 ? fmt::format("{}/{}", run.step, run.total_steps) : std::to_string(run.step),
         run.loss ? metric_text(*run.loss) : "-",
         newest > 0 ? fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(newest)) : "-",
         printable(run.folder, true)});
  }
  return rows;
}

Json run_list_json(const std::vector<RunLine>& runs) {
  Json list = Json::array();
  for (const RunLine& run : runs)
    list.push_back({{"folder", run.folder},
                    {"run_name", run.name},
                    {"state", run.state},
                    {"step", run.step},
                    {"total_steps", run.total_steps > 0 ? Json(run.total_steps) : Json(nullptr)},
                    {"loss", run.loss && std::isfinite(*run.loss) ? Json(*run.loss) : Json(nullptr)},
                    {"time", run.newest_s}});
  return list;
}

}  // namespace tycho
