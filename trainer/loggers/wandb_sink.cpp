// Offline runs of Weights & Biases: a folder for each attempt, which `wandb sync` uploads.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <optional>

#include "trainer/base/error.h"
#include "trainer/base/hash.h"
#include "trainer/base/host_name.h"
#include "trainer/loggers/background_sink.h"
#include "trainer/loggers/sink.h"
#include "trainer/loggers/wandb_file.h"
#include "trainer/metrics/line_file.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

/// File in the run folder with the id that all attempts share.
constexpr const char* kIdFile = "/wandb_run_id.txt";

std::string local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return fmt::format("{:%Y%m%d_%H%M%S}", local);
}

/// Returns the highest step that earlier attempts wrote; -1 when there is none.
int64_t last_step_of(const std::string& dir, const std::string& id) {
  int64_t last = -1;
  const std::string file = "run-" + id + ".wandb";
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir, ignored))
    if (const fs::path path = entry.path() / file; fs::exists(path))
      last = std::max(last, last_wandb_step(read_file(path.string())));
  return last;
}

class WandbWriter final : public RecordWriter {
 public:
  WandbWriter(const WandbSinkConfig& config, const SinkTarget& place) : config_(config), place_(place) {}

  void start(const RunInfo& info) override {
    const std::string dir = (config_.dir.empty() ? place_.run_dir : config_.dir) + "/wandb";
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
    last_step_ = last_step_of(dir, run_.id);
    run_.resumes = last_step_ >= 0;
    const std::string folder = free_folder(fmt::format("{}/offline-run-{}-{}", dir, local_time(), run_.id));
    make_dirs(place_.files, folder + "/files");
    folder_ = folder;
    file_ = place_.files.create(fmt::format("{}/run-{}.wandb", folder, run_.id));
    const std::string header = blocks_.header();
    file_->write(header.data(), header.size());
    put(wandb_header_message(next()));
    put(wandb_run_message(next(), run_));
  }

  // Steps of a run must grow: those that were written stay, and are not repeated.
  void resume(int64_t) override { flush_row(); }

  void write(const std::vector<MetricRecord>& records) override {
    for (const MetricRecord& record : records) {
      if (row_ && row_->numbers.step != record.step) flush_row();
      if (record.step <= last_step_) continue;
      if (!row_) row_ = WandbRow{{record.step, record.time_s, {}}};
      for (const auto& number : record.numbers) set(number);
      for (const NamedTable& table : record.tables) put_table(table);
    }
  }

  bool takes_tables() const override { return true; }

  void end(const std::string& reason) override {
    flush_row();
    put(wandb_exit_message(next(), reason.starts_with("failed") ? 1 : 0, now_s() - start_s_));
  }

 private:
  /// Returns the id: eight characters, like W&B's own ids. Kept in the run folder, so that every attempt has
  /// the same.
  std::string run_id() {
    const std::string path = place_.run_dir + kIdFile;
    if (!fs::exists(path)) {
      const std::string seed = fmt::format("{} {} {} {}", place_.run_dir, host_name(), ::getpid(), start_s_);
      write_file_atomically(place_.files, path, hash_hex(seed).substr(0, 8) + "\n");
    }
    std::string id = read_file(path);
    id.erase(id.find_last_not_of(" \n") + 1);
    const bool good = !id.empty() && id.size() <= 64 &&
                      std::all_of(id.begin(), id.end(),
                                  [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; });
    if (!good)
      fail(ExitCode::kStorage, "[wandb] {} does not hold an id of W&B; remove it, or write the id into it",
           path);
    return id;
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

  void put_table(const NamedTable& table) {
    const WandbTableFile file = wandb_table_file(table, row_->numbers.step);
    const std::string path = folder_ + "/files/" + file.path;
    make_dirs(place_.files, std::filesystem::path(path).parent_path().string());
    const auto out = place_.files.create(path);
    out->write(file.text.data(), file.text.size());
    out->close();
    put(wandb_file_message(next(), file.path));
    row_->tables.push_back(file.in_row);
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
  WandbRun run_;
  WandbBlocks blocks_;
  std::unique_ptr<OutputFile> file_;
  std::string folder_;           // folder of this attempt
  std::optional<WandbRow> row_;  // row of the newest step, not written yet
  int64_t last_step_ = -1, num_records_ = 0;
  double start_s_ = 0;
};

}  // namespace

std::unique_ptr<MetricSink> make_sink(const WandbSinkConfig& config, const SinkTarget& place) {
  return make_background_sink("t.log.wandb", config.names, std::make_unique<WandbWriter>(config, place));
}

}  // namespace tycho
