// What happens in a run, in its folder: events.jsonl for programs, log.txt for people. Of a later start that
// ends before its first step one line stays in each (kNotStarted), unless it has done something else, such as
// an evaluation.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <sstream>

#include "trainer/metrics/line_file.h"
#include "trainer/metrics/plain_lines.h"
#include "trainer/metrics/reporter.h"

namespace tycho {
namespace {

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

class FileReporter : public Reporter {
 public:
  FileReporter(const std::string& run_dir, FileOps& files)
      : run_dir_(run_dir),
        files_(files),
        attempt_(next_attempt(run_dir)),
        events_(files, run_dir + "/events.jsonl"),
        log_(files, run_dir + "/log.txt") {}

  void run_start(const RunInfo& run) override {
    step_ = run.first_step;
    first_step_ = run.first_step;
    total_steps_ = run.total_steps;
    write_event("run_start", "", facts_of(run));
    log(banner_lines(run));
  }

  void step(const StepMetrics& m, bool record) override {
    step_ = m.step;
    only_opened_ = false;
    if (record) log(step_line(m, total_steps_));
  }

  void event(const std::string& kind, const std::string& text, const Json& facts) override {
    if (kind == "resume") step_ = facts.at("step");
    only_opened_ &= is_of_opening(kind) && !ends_;
    write_event(kind, text, facts);
    if (kind != "histogram") log(event_line(kind, text));  // one for each parameter, and a name alone
  }

  void table(int64_t step, const NamedTable& table) override {
    only_opened_ = false;
    LineFile file(files_, run_dir_ + "/" + table.file);
    for (const Json& row : table.rows) {
      Json line = {{"step", step}};
      line.update(row);
      file.write(line.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
  }

  // Warnings from here on are about what loggers did.
  void finish(const std::string&) override { ends_ = true; }

  void run_end(const std::string& reason, std::optional<ExitCode> failure) override {
    Json facts = failure ? Json{{"exit_code", static_cast<int>(*failure)}} : Json::object();
    const char* kind = "run_end";
    if (only_opened_ && (attempt_ > 1 || !first_step_) && take_back()) {
      if (first_step_) facts["first_step"] = *first_step_;
      kind = kNotStarted;
    }
    write_event(kind, reason, facts);
    log(kind == kNotStarted ? event_line(kNotStarted, reason) : end_line(reason));
  }

 private:
  /// Returns true for events that precede the first step of a start and have no meaning without one.
  static bool is_of_opening(const std::string& kind) {
    return kind == "wait" || kind == "data" || kind == "resume" || kind == "warning" || kind == "fp8";
  }

  /// Takes back the lines of this start. Returns false, and leaves them, when that fails.
  bool take_back() {
    try {
      log_.take_back();
      events_.take_back();
      return true;
    } catch (const Error&) {
      return false;
    }
  }

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
            {"planned_memory_bytes", run.planned_memory_bytes},
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

  const std::string run_dir_;
  FileOps& files_;
  int64_t attempt_;
  int64_t step_ = 0, total_steps_ = 0;
  std::optional<int64_t> first_step_;  // nullopt before run_start
  bool ends_ = false;
  bool only_opened_ = true;  // all lines so far belong to the opening of a run
  LineFile events_, log_;
};

}  // namespace

std::unique_ptr<Reporter> make_file_reporter(const std::string& run_dir, FileOps& files) {
  return std::make_unique<FileReporter>(run_dir, files);
}

}  // namespace tycho
