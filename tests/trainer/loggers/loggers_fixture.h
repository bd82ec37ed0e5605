// What tests of loggers share: a run whose numbers go to one logger, attempt after attempt.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/metrics/fixtures.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/loggers/sink.h"

namespace tycho {

/// Keeps what displays are told.
struct Told {
  std::vector<std::string> warnings;
  std::string end;
};

class ToldReporter final : public Reporter {
 public:
  explicit ToldReporter(Told& told) : told_(told) {}
  void event(const std::string& kind, const std::string& text, const Json&) override {
    if (kind == "warning") told_.warnings.push_back(text);
  }
  void run_end(const std::string& reason, std::optional<ExitCode> /*failure*/) override {
    told_.end = reason;
  }

 private:
  Told& told_;
};

/// One attempt of a run, which has nothing left to train when both steps are the same: what Trainer and
/// open_session tell their reporter.
struct Attempt {
  int64_t first_step = 0, last_step = 0;
  std::string end = "done";  // "" for a process that is killed: no run_end
  std::vector<StoredCheckpoint> checkpoints = {};
};

/// Runs an attempt with these sinks, in `dir` as run folder; the loss of a step is its number and the attempt
/// behind a dot: 12.1.
inline Told run_attempt(const std::string& dir, std::vector<SinkConfig> sinks, const Attempt& attempt,
                        FileOps& files = real_files()) {
  Told told;
  LogConfig log;
  log.sinks = std::move(sinks);
  const int64_t number = text_of(dir + "/events.jsonl").empty() ? 1 : 2;
  const auto reporter =
      make_run_reporter(dir, log, std::make_unique<ToldReporter>(told), {}, files, attempt.checkpoints);
  RunInfo run = some_run();
  run.run_dir = dir;
  run.first_step = attempt.first_step;
  if (attempt.first_step == attempt.last_step) run.total_steps = attempt.last_step;
  reporter->run_start(run);
  if (attempt.first_step > 0) reporter->event("resume", "resumed", {{"step", attempt.first_step}});
  for (int64_t step = attempt.first_step + 1; step <= attempt.last_step; ++step) {
    StepMetrics metrics = some_step(step);
    metrics.loss = static_cast<double>(step) + 0.1 * static_cast<double>(number);
    reporter->step(metrics, true);
  }
  if (!attempt.end.empty()) reporter->run_end(attempt.end, {});
  return told;
}

/// Two answers to a task.
inline NamedTable some_table(const std::string& task) {
  return {"icl/" + task,
          "icl_outputs.jsonl",
          {"item", "right", "output"},
          {{{"item", 1}, {"right", true}, {"output", "größer"}}, {{"item", 2}, {"right", false}}}};
}

/// Paths of the files below a folder whose names contain `part`, sorted.
inline std::vector<std::string> files_below(const std::string& dir, const std::string& part) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir))
    if (entry.path().filename().string().find(part) != std::string::npos)
      names.push_back(entry.path().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// How often `part` occurs.
inline int count_of(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace tycho
