// Appends what happens in a run to the files of its folder.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <sstream>

#include "trainer/metrics/plain_lines.h"
#include "trainer/metrics/reporter.h"

namespace tycho {
namespace {

/// A file of lines. A write that failed half-way, in this process or in one that was killed, leaves a torn
/// line: the next line starts on its own, and readers skip what does not parse.
class LineFile {
 public:
  LineFile(FileOps& files, const std::string& path)
      : torn_(ends_in_torn_line(path)), file_(files.append(path)) {}

  void write(std::string line) {
    line += '\n';
    if (torn_) line.insert(0, 1, '\n');
    torn_ = true;
    file_->write(line.data(), line.size());
    torn_ = false;
  }

 private:
  static bool ends_in_torn_line(const std::string& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file || file.tellg() <= 0) return false;
    file.seekg(-1, std::ios::end);
    return file.get() != '\n';
  }

  bool torn_;
  std::unique_ptr<OutputFile> file_;
};

/// 1 + the attempt of the last record in events.jsonl: every attempt begins with one.
int64_t next_attempt(const std::string& events_path) {
  constexpr std::streamoff kTailBytes = 1 << 16;
  std::ifstream file(events_path, std::ios::binary | std::ios::ate);
  if (!file) return 1;
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - kTailBytes));
  int64_t last = 0;
  for (std::string line; std::getline(file, line);) {
    const Json record = Json::parse(line, nullptr, false);
    if (!record.is_object() || !record.contains("attempt") || !record["attempt"].is_number_integer())
      continue;
    last = record["attempt"].get<int64_t>();
  }
  return last + 1;
}

/// Seconds since 1970, to the microsecond.
double now_s() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::microseconds>(now).count()) / 1e6;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

class FileReporter : public Reporter {
 public:
  FileReporter(const std::string& run_dir, FileOps& files)
      : attempt_(next_attempt(run_dir + "/events.jsonl")),
        metrics_(files, run_dir + "/metrics.jsonl"),
        events_(files, run_dir + "/events.jsonl"),
        log_(files, run_dir + "/log.txt") {}

  void run_start(const RunInfo& run) override {
    step_ = run.first_step;
    total_steps_ = run.total_steps;
    write_event("run_start", "", facts_of(run));
    log(banner_lines(run));
  }

  void step(const StepMetrics& m, bool record) override {
    step_ = m.step;
    if (!record) return;
    const Json json = {{"step", m.step},
                       {"attempt", attempt_},
                       {"time", now_s()},
                       {"tokens", m.tokens},
                       {"samples", m.samples},
                       {"epoch", m.epoch},
                       {"loss", m.loss},
                       {"lr", m.lr},
                       {"grad_norm", m.grad_norm},
                       {"step_s", m.step_s},
                       {"data_wait_s", m.data_wait_s},
                       {"tokens_per_s", m.tokens_per_s},
                       {"tflops", m.tflops},
                       {"tflops_causal", m.tflops_causal},
                       {"mfu", or_null(m.mfu)},
                       {"mfu_causal", or_null(m.mfu_causal)},
                       {"memory_bytes", m.memory_bytes},
                       {"eta_s", m.eta_s}};
    metrics_.write(json.dump());
    log(step_line(m, total_steps_));
  }

  void metric(int64_t step, const std::string& name, double value) override {
    metrics_.write(Json{{"step", step}, {"attempt", attempt_}, {"time", now_s()}, {name, value}}.dump());
  }

  void event(const std::string& kind, const std::string& text, const Json& facts) override {
    if (kind == "resume") step_ = facts.at("step");
    write_event(kind, text, facts);
    log(event_line(kind, text));
  }

  void run_end(const std::string& reason) override {
    write_event("run_end", reason, nullptr);
    log(end_line(reason));
  }

 private:
  static Json facts_of(const RunInfo& run) {
    return {{"run_name", run.run_name},
            {"device", run.device},
            {"precision", run.precision},
            {"recipe_hash", run.recipe_hash},
            {"pins", run.pins},
            {"num_ranks", run.num_ranks},
            {"total_steps", run.total_steps},
            {"total_tokens", run.total_tokens},
            {"first_step", run.first_step},
            {"num_params", run.num_params},
            {"device_memory_bytes", run.device_memory_bytes},
            {"flops_per_token_full", run.flops_per_token_full},
            {"flops_per_token_causal", run.flops_per_token_causal},
            {"peak_flops", or_null(run.peak_flops)}};
  }

  void write_event(const std::string& kind, const std::string& text, const Json& facts) {
    Json record = {{"time", now_s()}, {"attempt", attempt_}, {"step", step_}, {"kind", kind}, {"text", text}};
    if (!facts.empty()) record["facts"] = facts;
    // Paths and messages may hold bytes that are not UTF-8: a replacement sign is better than a lost record.
    events_.write(record.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  void log(const std::string& lines) {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    std::istringstream rest(lines);
    for (std::string line; std::getline(rest, line);)
      log_.write(fmt::format("{:%Y-%m-%d %H:%M:%S} {}", local, line));
  }

  int64_t attempt_;
  int64_t step_ = 0, total_steps_ = 0;
  LineFile metrics_, events_, log_;
};

}  // namespace

std::unique_ptr<Reporter> make_file_reporter(const std::string& run_dir, FileOps& files) {
  return std::make_unique<FileReporter>(run_dir, files);
}

}  // namespace tycho
