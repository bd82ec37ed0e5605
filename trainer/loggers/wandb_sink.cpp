// Runs of Weights & Biases: a folder for each attempt with a file of its records. Offline, `wandb sync`
// uploads it. Online, this process does, and the file's name keeps `wandb sync` from sending every row again.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/hash.h"
#include "trainer/base/host_name.h"
#include "trainer/loggers/background_sink.h"
#include "trainer/loggers/recorded_numbers.h"
#include "trainer/loggers/sink.h"
#include "trainer/loggers/wandb_blocks.h"
#include "trainer/loggers/wandb_entry.h"
#include "trainer/loggers/wandb_file.h"
#include "trainer/loggers/wandb_machine.h"
#include "trainer/loggers/wandb_online.h"
#include "trainer/loggers/wandb_sync.h"
#include "trainer/metrics/line_file.h"
#include "trainer/metrics/plain_lines.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

std::string local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return fmt::format("{:%Y%m%d_%H%M%S}", local);
}

/// Returns the line that log.txt gets when its run has ended.
std::string end_of_log(const std::string& reason) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return fmt::format("{:%Y-%m-%d %H:%M:%S} {}", local, end_line(reason));
}

class WandbWriter final : public RecordWriter {
 public:
  WandbWriter(const WandbSinkConfig& config, const SinkTarget& place) : config_(config), place_(place) {}

  void start(const RunInfo& info) override {
    find_server();
    info_ = info;
    const std::string dir = wandb_dir(config_, place_.run_dir);
    make_dirs(place_.files, dir);
    start_s_ = now_s();
    run_.id = run_id();
    run_.project = config_.project;
    run_.entity = config_.entity;
    run_.group = config_.group;
    run_.tags = config_.tags;
    run_.name = info.run_name;
    run_.host = host_name();
    run_.start_s = start_s_;
    if (const std::string recipe = place_.run_dir + "/recipe.json"; fs::exists(recipe))
      run_.config = Json::parse(read_file(recipe));
    std::vector<std::string> files = wandb_files(dir, run_.id);
    const WandbEnd end = end_of_wandb_files(files);
    artifacts_ = end.artifacts;
    last_step_ = end.step;
    start_s_ -= end.runtime_s;
    run_.resumes = last_step_ >= 0;
    const std::string folder = free_folder(
        fmt::format("{}/{}-run-{}-{}", dir, is_online_ ? "online" : "offline", local_time(), run_.id));
    make_dirs(place_.files, folder + "/files");
    folder_ = folder;
    files.push_back(fmt::format("{}/run-{}.{}", folder, run_.id, is_online_ ? "online" : "wandb"));
    file_ = place_.files.create(files.back());
    const std::string header = blocks_.header();
    file_->write(header.data(), header.size());
    put(wandb_header_message(next()));
    put(wandb_run_message(next(), run_));
    put_machine_numbers();
    // A kill may have come between a checkpoint and its record.
    for (const StoredCheckpoint& checkpoint : place_.checkpoints) put_artifact(checkpoint);
    if (settings_) online_ = std::make_unique<WandbOnline>(*settings_, place_.run_dir, std::move(files));
  }

  bool is_behind(const std::vector<StoredCheckpoint>& more) override {
    if (!fs::exists(place_.run_dir + kWandbIdFile)) return false;
    const std::string id = wandb_run_id(place_.run_dir);
    const std::vector<std::string> files = wandb_files(wandb_dir(config_, place_.run_dir), id);
    if (files.empty()) return false;
    const WandbEnd end = end_of_wandb_files(files);
    if (!end.has_exit || (files.back().ends_with(".online") && !is_wholly_sent(files.back()))) return true;
    const auto is_new = [&](const StoredCheckpoint& one) {
      return !end.artifacts.contains(checkpoint_artifact(id, one).digest);
    };
    return std::any_of(more.begin(), more.end(), is_new) ||
           std::any_of(place_.checkpoints.begin(), place_.checkpoints.end(), is_new);
  }

  // Steps of a run must grow: those that were written stay, and are not repeated. Those that a kill kept from
  // being written are still in metrics.jsonl.
  void resume(int64_t step) override {
    flush_row();
    if (last_step_ < step)
      write(recorded_numbers(place_.run_dir, last_step_ + 1, step, info_, config_.names));
    flush_row();
  }

  void write(const std::vector<MetricRecord>& records) override {
    for (const MetricRecord& record : records) {
      if (row_ && row_->numbers.step != record.step) flush_row();
      put_events(record);
      if (record.step <= last_step_ || !has_row(record)) continue;
      if (!row_) row_ = WandbRow{{record.step, record.time_s, {}}};
      for (const auto& number : record.numbers) set(number);
      for (const NamedHistogram& histogram : record.histograms)
        row_->others.push_back(wandb_histogram(histogram));
      for (const NamedTable& table : record.tables) put_table(table);
    }
    if (now_s() - machine_at_s_ >= tick_s()) put_machine_numbers();
  }

  void tick() override { put_machine_numbers(); }
  double tick_s() const override { return 15; }  // the official client's own interval

  bool takes_more_than_numbers() const override { return true; }
  bool takes_events() const override { return true; }
  bool takes_tables() const override { return true; }

  void end(const std::string& reason) override {
    flush_row();
    put_machine_numbers();
    put(wandb_exit_message(next(), reason.starts_with("failed") ? 1 : 0, now_s() - start_s_));
    if (!online_) return;
    const std::string why = online_->end(end_of_log(reason));
    const std::lock_guard lock(mutex_);
    if (!why.empty())
      last_news_ = fmt::format("not everything is sent yet: {}; `tycho log sync {}` sends the rest", why,
                               place_.run_dir);
  }

  std::string news() override {
    const std::lock_guard lock(mutex_);
    if (!last_news_.empty()) return std::exchange(last_news_, "");
    return online_ ? online_->news() : "";
  }

  void cancel() override {
    if (online_) online_->cancel();
  }

 private:
  /// Finds out whether numbers are sent, and where to. A run that has trained already writes its file even
  /// without a key; what the file has is sent later.
  void find_server() {
    try {
      is_online_ = is_online(config_);
      if (is_online_) settings_ = find_wandb_settings(config_.entity);
    } catch (const Error& error) {
      if (place_.attempt == 1) throw;
      is_online_ = true;  // an earlier attempt may have sent a part
      last_news_ = fmt::format(
          "nothing is sent: {}; the file below {} has everything, and `tycho log sync {}` sends it",
          error.what(), wandb_dir(config_, place_.run_dir), place_.run_dir);
    }
  }

  /// Returns the id: eight characters, like W&B's own ids. Kept in the run folder, so that every attempt has
  /// the same.
  std::string run_id() {
    const std::string path = place_.run_dir + kWandbIdFile;
    if (!fs::exists(path)) {
      const std::string seed = fmt::format("{} {} {} {}", place_.run_dir, host_name(), ::getpid(), start_s_);
      write_file_atomically(place_.files, path, hash_hex(seed).substr(0, 8) + "\n");
    }
    return wandb_run_id(place_.run_dir);
  }

  /// Returns a folder that does not exist, since two attempts within a second must not share one.
  static std::string free_folder(const std::string& folder) {
    std::string free = folder;
    const size_t dash = folder.rfind('-');
    for (int i = 1; fs::exists(free); ++i)
      free = fmt::format("{}.{}{}", folder.substr(0, dash), i, folder.substr(dash));
    return free;
  }

  void set(const std::pair<std::string, double>& number) {
    for (auto& [name, value] : row_->numbers.numbers)
      if (name == number.first) {
        value = number.second;
        return;
      }
    row_->numbers.numbers.push_back(number);
  }

  static bool has_row(const MetricRecord& record) {
    return !record.numbers.empty() || !record.histograms.empty() || !record.tables.empty();
  }

  void put_machine_numbers() {
    machine_at_s_ = now_s();
    put(wandb_machine_message(next(), machine_at_s_, machine_.sample()));
  }

  void put_events(const MetricRecord& record) {
    for (const NamedText& alert : record.alerts) put(wandb_alert_message(next(), alert));
    for (const StoredCheckpoint& checkpoint : record.checkpoints) {
      // With a store of objects, the local copy may be gone soon.
      const Json::json_pointer remote("/ckpt/remote");
      const bool has_store = run_.config.contains(remote) && run_.config.at(remote) != "";
      if (has_store && checkpoint.place.find("://") == std::string::npos) continue;
      put_artifact(checkpoint);
    }
  }

  void put_artifact(const StoredCheckpoint& checkpoint) {
    const WandbArtifact artifact = checkpoint_artifact(run_.id, checkpoint);
    if (artifacts_.insert(artifact.digest).second) put(wandb_artifact_message(next(), run_, artifact));
  }

  void put_table(const NamedTable& table) {
    const WandbTableFile file = wandb_table_file(table, row_->numbers.step);
    const std::string path = folder_ + "/files/" + file.path;
    make_dirs(place_.files, std::filesystem::path(path).parent_path().string());
    const auto out = place_.files.create(path);
    out->write(file.text.data(), file.text.size());
    out->close();
    put(wandb_file_message(next(), file.path));
    row_->others.push_back(file.in_row);
  }

  // A step has one row: it is written when a number of another step comes.
  void flush_row() {
    if (!row_) return;
    const double runtime_s = row_->numbers.time_s - start_s_;
    put(wandb_summary_message(next(), *row_, runtime_s));
    put(wandb_history_message(next(), *row_, runtime_s));
    last_step_ = row_->numbers.step;
    row_.reset();
  }

  int64_t next() { return ++num_records_; }

  void put(const std::string& message) {
    const std::string record = blocks_.record(message);
    file_->write(record.data(), record.size());
  }

  const WandbSinkConfig config_;
  const SinkTarget place_;
  bool is_online_ = false;
  std::optional<WandbSettings> settings_;  // nullopt: nothing is sent
  RunInfo info_;
  WandbRun run_;
  WandbBlocks blocks_;
  std::unique_ptr<OutputFile> file_;
  std::string folder_;               // folder of this attempt
  std::set<std::string> artifacts_;  // digests of those in the files
  std::optional<WandbRow> row_;      // row of the newest step, not written yet
  int64_t last_step_ = -1, num_records_ = 0;
  WandbMachine machine_;
  double machine_at_s_ = 0;  // time of the last numbers of the machine
  double start_s_ = 0;       // of the first attempt, without the time between attempts
  std::unique_ptr<WandbOnline> online_;
  std::mutex mutex_;
  std::string last_news_;
};

}  // namespace

std::unique_ptr<MetricSink> make_sink(const WandbSinkConfig& config, const SinkTarget& place) {
  return make_background_sink("t.log.wandb", config.names, std::make_unique<WandbWriter>(config, place));
}

}  // namespace tycho
