// Event files for TensorBoard: one for each attempt. TensorBoard names a run by the path of its files and
// groups numbers by what stands before the slash of their tags.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <tuple>

#include "trainer/base/error.h"
#include "trainer/base/host_name.h"
#include "trainer/loggers/background_sink.h"
#include "trainer/loggers/event_file.h"
#include "trainer/loggers/sink.h"
#include "trainer/metrics/line_file.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "events.out.tfevents.";

/// Returns the names of the folder's event files in the order in which readers take them; readers never go
/// back.
std::vector<std::string> event_files(const std::string& dir) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir, ignored))
    if (std::string name = entry.path().filename().string(); name.starts_with(kPrefix))
      names.push_back(std::move(name));
  std::sort(names.begin(), names.end());
  return names;
}

/// Returns the second that an event file is named after.
int64_t second_of(const std::string& name) {
  int64_t second = 0;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), second);
  return second;
}

/// Returns true when the folder's first event file has tags without groups, as all had until 2026-11. A run
/// keeps its tags, because otherwise its curves would break where it resumed.
bool has_plain_tags(const std::string& dir, const std::vector<std::string>& names) {
  if (names.empty()) return false;
  std::ifstream file(dir + "/" + names.front(), std::ios::binary);
  // The recipe's text and the first step come first.
  std::string head(size_t{1} << 20, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  return head.find("\x0a\x04loss") != std::string::npos;
}

/// Returns the tag of a number with Tycho's name: train/loss, perf/mfu, eval/val/loss. Names given by
/// callbacks are unchanged.
std::string grouped_tag(const std::string& name) {
  static const std::set<std::string_view> kTrain = {"tokens", "samples", "epoch", "loss", "lr", "grad_norm"};
  static const std::set<std::string_view> kOfSteps = std::apply(
      [](const auto&... field) { return std::set<std::string_view>{field.name...}; }, StepMetrics::fields());
  if (kTrain.contains(name)) return "train/" + name;
  if (kOfSteps.contains(name)) return "perf/" + name;
  if (!name.starts_with("eval.")) return name;
  std::string tag = name;
  tag[4] = '/';
  if (const size_t dot = tag.rfind('.'); dot != std::string::npos) tag[dot] = '/';
  return tag;
}

class TensorboardWriter final : public RecordWriter {
 public:
  TensorboardWriter(const TensorboardSinkConfig& config, const SinkTarget& place)
      : dir_(config.dir), groups_tags_(config.names == MetricNames::kTycho), place_(place) {}

  void start(const RunInfo& run) override {
    std::string dir = dir_.empty() ? place_.run_dir : dir_ + "/" + run.run_name;
    // Where the files of runs were until 2026-11.
    if (const std::string older = place_.run_dir + "/tensorboard"; dir_.empty() && fs::exists(older))
      dir = older;
    make_dirs(place_.files, dir);
    const std::vector<std::string> earlier = event_files(dir);
    if (has_plain_tags(dir, earlier)) groups_tags_ = false;
    const int64_t second =
        std::max(static_cast<int64_t>(now_s()), earlier.empty() ? 0 : second_of(earlier.back()) + 1);
    file_ = place_.files.create(
        fmt::format("{}/{}{:010}.{}.{}.{}", dir, kPrefix, second, host_name(), ::getpid(), place_.attempt));
    put(version_event(now_s()));
    // Some readers take the first restart of a run for its beginning, and drop nothing there.
    if (place_.attempt == 1) put(restart_event(now_s(), 1));
    const std::string recipe = place_.run_dir + "/recipe.lua";
    if (fs::exists(recipe))
      put(text_event(now_s(), run.first_step, "recipe", "```lua\n" + read_file(recipe) + "\n```"));
  }

  void resume(int64_t step) override { put(restart_event(now_s(), step + 1)); }

  void write(const std::vector<MetricRecord>& records) override {
    std::string events;
    for (const MetricRecord& record : records) {
      if (!record.numbers.empty()) events += numbers_event(tagged(record));
      for (const NamedHistogram& histogram : record.histograms)
        events += histogram_event(record.time_s, record.step, histogram);
      for (const auto& [name, text] : record.texts)
        events += text_event(record.time_s, record.step, name, text);
    }
    put(events);
  }

  bool takes_more_than_numbers() const override { return true; }

 private:
  MetricRecord tagged(const MetricRecord& record) const {
    MetricRecord tagged = {.step = record.step, .time_s = record.time_s, .numbers = record.numbers};
    if (groups_tags_)
      for (auto& [name, value] : tagged.numbers) name = grouped_tag(name);
    return tagged;
  }
  void put(const std::string& events) { file_->write(events.data(), events.size()); }

  const std::string dir_;
  bool groups_tags_;
  const SinkTarget place_;
  std::unique_ptr<OutputFile> file_;
};

}  // namespace

std::unique_ptr<MetricSink> make_sink(const TensorboardSinkConfig& config, const SinkTarget& place) {
  return make_background_sink("t.log.tensorboard", config.names,
                              std::make_unique<TensorboardWriter>(config, place));
}

}  // namespace tycho
