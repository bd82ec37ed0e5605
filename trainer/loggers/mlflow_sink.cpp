// Runs of MLflow, on a tracking server or in a folder; every attempt of a run adds to the same one.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <utility>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/loggers/background_sink.h"
#include "trainer/loggers/mlflow_store.h"
#include "trainer/loggers/recorded_numbers.h"
#include "trainer/loggers/sink.h"
#include "trainer/metrics/line_file.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

/// File in the run folder with the id that all attempts share.
constexpr const char* kMlflowIdFile = "/mlflow_run_id.txt";
constexpr size_t kMostParamBytes = 500;  // limit of older servers

int64_t milliseconds(double seconds) { return static_cast<int64_t>(seconds * 1000); }

/// Returns a value of the recipe; lists as JSON.
std::string param_text(const Json& value) {
  std::string text = value.is_string() && !value.get<std::string>().empty()
                         ? value.get<std::string>()
                         : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMostParamBytes) {
    size_t end = kMostParamBytes - 3;
    while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) --end;  // a whole character
    text = text.substr(0, end) + "...";
  }
  return text;
}

MlflowStatus status_of(const std::string& reason) {
  if (reason.starts_with("failed")) return MlflowStatus::kFailed;
  return reason.starts_with("stopped by SIG") || reason == "stopped" ? MlflowStatus::kKilled
                                                                     : MlflowStatus::kFinished;
}

std::unique_ptr<MlflowStore> open_store(const std::string& given, const SinkTarget& place) {
  std::string uri = given.empty() ? environment_variable("MLFLOW_TRACKING_URI") : given;
  if (uri.empty()) uri = place.run_dir + "/mlruns";
  if (const std::string problem = tracking_uri_problem(uri); !problem.empty())
    fail(ExitCode::kStorage, "[mlflow] MLFLOW_TRACKING_URI: {}", problem);
  if (uri.starts_with("http://") || uri.starts_with("https://")) return make_mlflow_server(uri);
  constexpr std::string_view kFile = "file://";
  return make_mlflow_folder(uri.starts_with(kFile) ? uri.substr(kFile.size()) : uri, place.files);
}

class MlflowWriter final : public RecordWriter {
 public:
  MlflowWriter(const MlflowSinkConfig& config, const SinkTarget& place) : config_(config), place_(place) {}

  void start(const RunInfo& info) override {
    info_ = info;
    store_ = open_store(config_.tracking_uri, place_);
    const std::string path = place_.run_dir + kMlflowIdFile;
    if (fs::exists(path)) {
      id_ = id_in(path);
      last_steps_ = store_->resume_run(id_);
      written_before_ = last_steps_;
      return;
    }
    MlflowRun run = {
        config_.experiment, info.run_name, environment_variable("USER"), milliseconds(now_s()), {}, {}};
    if (const std::string recipe = place_.run_dir + "/recipe.json"; fs::exists(recipe))
      add_params("", Json::parse(read_file(recipe)), run.params);
    run.tags = {{"mlflow.source.name", "tycho"}, {"mlflow.user", run.user}};
    for (const auto& [key, value] : config_.tags) run.tags.emplace_back(store_->key_of(key), value);
    id_ = store_->create_run(run);
    write_file_atomically(place_.files, path, id_ + "\n");
  }

  // A kill leaves the run running on the server.
  bool is_behind(const std::vector<StoredCheckpoint>&) override {
    const std::string path = place_.run_dir + kMlflowIdFile;
    return fs::exists(path) && open_store(config_.tracking_uri, place_)->is_running(id_in(path));
  }

  // Points cannot be taken back: those that were written stay, and are not repeated. Those that a kill kept
  // from being sent are still in metrics.jsonl.
  void resume(int64_t step) override {
    written_before_ = last_steps_;
    int64_t last_sent = 0;
    for (const auto& [key, last] : last_steps_) last_sent = std::max(last_sent, last);
    if (last_sent <= step) send(recorded_numbers(place_.run_dir, last_sent, step, info_, config_.names));
  }

  void write(const std::vector<MetricRecord>& records) override {
    send(records);
    for (const MetricRecord& record : records)
      for (const NamedTable& table : record.tables) store_->add_table(id_, table, record.step);
  }

  bool takes_tables() const override { return true; }

  void end(const std::string& reason) override {
    store_->end_run(id_, status_of(reason), milliseconds(now_s()));
  }

  // A request holds hundreds of steps as well as one.
  double pause_s() const override { return 1; }

  void cancel() override { store_->cancel(); }

 private:
  void send(const std::vector<MetricRecord>& records) {
    std::vector<MlflowPoint> points;
    for (const MetricRecord& record : records)
      for (const auto& [name, value] : record.numbers) {
        const std::string key = store_->key_of(name);
        const auto before = written_before_.find(key);
        if (before != written_before_.end() && record.step <= before->second) continue;
        points.push_back({key, value, milliseconds(record.time_s), record.step});
        int64_t& last = last_steps_.try_emplace(key, record.step).first->second;
        last = std::max(last, record.step);
      }
    store_->add_points(id_, points);
  }

  /// Adds the keys of the recipe, such as model.width.
  void add_params(const std::string& key, const Json& value, MlflowTexts& params) const {
    if (!value.is_object()) {
      params.emplace_back(store_->key_of(key), param_text(value));
      return;
    }
    for (const auto& [name, part] : value.items())
      add_params(key.empty() ? name : key + "." + name, part, params);
  }

  static std::string id_in(const std::string& path) {
    std::string id = read_file(path);
    id.erase(id.find_last_not_of(" \n") + 1);
    const bool good = !id.empty() && id.size() <= 64 &&
                      std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isalnum(c); });
    if (!good)
      fail(ExitCode::kStorage,
           "[mlflow] {} does not hold an id of MLflow; remove it, or write the id into it", path);
    return id;
  }

  const MlflowSinkConfig config_;
  const SinkTarget place_;
  RunInfo info_;
  std::unique_ptr<MlflowStore> store_;
  std::string id_;
  std::map<std::string, int64_t> last_steps_, written_before_;  // by metric
};

}  // namespace

std::unique_ptr<MetricSink> make_sink(const MlflowSinkConfig& config, const SinkTarget& place) {
  return make_background_sink("t.log.mlflow", config.names, std::make_unique<MlflowWriter>(config, place));
}

}  // namespace tycho
