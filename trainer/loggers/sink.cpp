// Passes on what sinks hear.
#include "trainer/loggers/sink.h"

#include <fmt/format.h>

#include <exception>
#include <optional>
#include <utility>
#include <variant>

#include "trainer/base/as_error.h"
#include "trainer/base/error.h"
#include "trainer/metrics/line_file.h"

namespace tycho {
namespace {

class SinkReporter final : public Reporter {
 public:
  SinkReporter(std::unique_ptr<MetricSink> sink, std::string kind, int64_t attempt)
      : sink_(std::move(sink)), kind_(std::move(kind)), attempt_(attempt) {}

  // Sinks of a run that was started before may make void what a checkpoint is older than. So they wait for a
  // first number: a start that ends without one changes nothing.
  void run_start(const RunInfo& run) override {
    waiting_ = run;
    // An attempt before this one got nowhere that could be resumed from.
    if (attempt_ > 1 && run.first_step == 0) resumed_from_ = 0;
    if (attempt_ == 1) begin();
  }
  void step(const StepMetrics& metrics, bool record) override {
    begin();
    tell_failure();
    if (record && sink_) sink_->step(metrics);
  }
  void metric(int64_t step, const std::string& name, double value) override {
    begin();
    tell_failure();
    if (sink_) sink_->metric(step, name, value);
  }
  void event(const std::string& kind, const std::string&, const Json& facts) override {
    if (!sink_) return;
    if (kind == "resume") {
      resumed_from_ = facts.at("step");
      if (!waiting_) tell_resume();
    }
    // Uploads of an earlier start may end before the first number.
    if (kind == "checkpoint" || kind == "upload") {
      if (facts.contains("path"))
        checkpoints_.push_back({facts.at("step"), facts.at("path"), facts.at("bytes")});
      if (!waiting_) pass_checkpoints();
    }
    if (kind != "histogram" && kind != "text" && kind != "alert") return;
    begin();
    if (!sink_) return;
    if (kind == "histogram")
      sink_->histogram(facts.at("step"),
                       {facts.at("name"), facts.at("low"), facts.at("high"), facts.at("counts")});
    if (kind == "text") sink_->text(facts.at("step"), {facts.at("name"), facts.at("text")});
    if (kind == "alert") sink_->alert(facts.at("step"), {facts.at("title"), facts.at("text")});
  }
  void table(int64_t step, const NamedTable& table) override {
    begin();
    tell_failure();
    if (sink_) sink_->table(step, table);
  }
  void finish(const std::string& reason) override {
    const bool catches_up = must_catch_up(reason);
    if (catches_up) begin();
    if (waiting_) return;  // for a step that never came
    tell_failure();
    if (sink_) sink_->finish(reason);
    if (catches_up && sink_)
      fail(ExitCode::kStorage, "[log] t.log.{} has now what the start before could not give it", kind_);
  }

 private:
  void begin() {
    if (!waiting_) return;
    const RunInfo run = *std::exchange(waiting_, std::nullopt);
    try {
      sink_->run_start(run);
    } catch (const std::exception& error) {
      // A recipe that is wrong is told before anything is trained. A run that has trained already is not
      // given up because a disk is not there today.
      const Error own = as_error(error, /*unknown=*/ExitCode::kStorage);
      if (attempt_ == 1)
        fail(own.code(), "[log] t.log.{} cannot start: {}; correct it, or remove it from log.sinks", kind_,
             own.what());
      sink_.reset();
      failure_ = own.what();
    }
    tell_resume();
    pass_checkpoints();
  }

  /// Returns true if all steps were done before this start, and a kill kept some of them from the sink.
  bool must_catch_up(const std::string& reason) const {
    if (!waiting_ || !sink_ || reason.starts_with("failed")) return false;
    if (waiting_->first_step < waiting_->until_step.value_or(waiting_->total_steps)) return false;
    return sink_->is_behind(checkpoints_);
  }

  void pass_checkpoints() {
    for (const StoredCheckpoint& checkpoint : std::exchange(checkpoints_, {}))
      if (sink_) sink_->checkpoint(checkpoint);
  }

  void tell_resume() {
    if (sink_ && resumed_from_) sink_->resume(*resumed_from_);
    resumed_from_.reset();
  }

  void tell_failure() {
    if (failure_.empty()) return;
    fail(ExitCode::kStorage,
         "[log] t.log.{} is switched off until the next start: {}; the run continues, and metrics.jsonl has "
         "all "
         "numbers",
         kind_, std::exchange(failure_, ""));
  }

  std::unique_ptr<MetricSink> sink_;  // null after a failed start
  std::string kind_;
  int64_t attempt_;
  std::optional<RunInfo> waiting_;             // of a start whose first number has not arrived
  std::vector<StoredCheckpoint> checkpoints_;  // that the sink does not know yet
  std::optional<int64_t> resumed_from_;        // a step that the sink does not know yet
  std::string failure_;                        // error of the start, until it is reported
};

}  // namespace

std::vector<std::unique_ptr<Reporter>> make_sink_reporters(const std::vector<SinkConfig>& sinks,
                                                           const std::string& run_dir, FileOps& files,
                                                           const std::vector<StoredCheckpoint>& checkpoints) {
  const SinkTarget place = {run_dir, next_attempt(run_dir), files, checkpoints};
  std::vector<std::unique_ptr<Reporter>> reporters;
  for (const SinkConfig& sink : sinks)
    reporters.push_back(std::make_unique<SinkReporter>(
        std::visit([&](const auto& kind) { return make_sink(kind, place); }, sink.value), sink.kind(),
        place.attempt));
  return reporters;
}

std::unique_ptr<Reporter> make_run_reporter(const std::string& run_dir, const LogConfig& log,
                                            std::unique_ptr<Reporter> display,
                                            std::vector<std::unique_ptr<Reporter>> others, FileOps& files,
                                            const std::vector<StoredCheckpoint>& checkpoints) {
  std::vector<std::unique_ptr<Reporter>> reporters =
      make_sink_reporters(log.sinks, run_dir, files, checkpoints);
  reporters.push_back(make_file_reporter(run_dir, files));
  for (auto& other : others) reporters.push_back(std::move(other));
  if (display) reporters.push_back(std::move(display));
  return make_tee(std::move(reporters));
}

}  // namespace tycho
