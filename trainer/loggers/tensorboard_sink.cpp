// Event files for TensorBoard: one for each attempt.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <string_view>

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

/// The second that the newest event file of the folder is named after; 0 without one. Readers take files in
/// the order of their names, and never go back.
int64_t newest_second(const std::string& dir) {
  int64_t newest = 0;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    int64_t second = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), second);
    newest = std::max(newest, second);
  }
  return newest;
}

class TensorboardWriter final : public RecordWriter {
 public:
  TensorboardWriter(const TensorboardSinkConfig& config, const SinkPlace& place)
      : dir_(config.dir), place_(place) {}

  void start(const RunInfo& run) override {
    const std::string dir = dir_.empty() ? place_.run_dir + "/tensorboard" : dir_ + "/" + run.run_name;
    make_dirs(place_.files, dir);
    const int64_t second = std::max(static_cast<int64_t>(now_s()), newest_second(dir) + 1);
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
      if (!record.numbers.empty()) events += numbers_event(record);
      for (const NamedHistogram& histogram : record.histograms)
        events += histogram_event(record.time_s, record.step, histogram);
      for (const auto& [name, text] : record.texts)
        events += text_event(record.time_s, record.step, name, text);
    }
    put(events);
  }

  bool takes_more_than_numbers() const override { return true; }

 private:
  void put(const std::string& events) { file_->write(events.data(), events.size()); }

  const std::string dir_;
  const SinkPlace place_;
  std::unique_ptr<OutputFile> file_;
};

}  // namespace

std::unique_ptr<MetricSink> make_sink(const TensorboardSinkConfig& config, const SinkPlace& place) {
  return make_background_sink("t.log.tensorboard", config.names,
                              std::make_unique<TensorboardWriter>(config, place));
}

}  // namespace tycho
