// Passes on what sinks hear.
#include "trainer/loggers/sink.h"

#include <fmt/format.h>

#include <exception>
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

  void run_start(const RunInfo& run) override {
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
    // An attempt before this one got nowhere that could be resumed from.
    if (sink_ && attempt_ > 1 && run.first_step == 0) sink_->resume(0);
  }
  void step(const StepMetrics& metrics, bool record) override {
    tell_failure();
    if (record && sink_) sink_->step(metrics);
  }
  void metric(int64_t step, const std::string& name, double value) override {
    tell_failure();
    if (sink_) sink_->metric(step, name, value);
  }
  void event(const std::string& kind, const std::string&, const Json& facts) override {
    if (!sink_) return;
    if (kind == "resume") sink_->resume(facts.at("step"));
    if (kind == "histogram")
      sink_->histogram(facts.at("step"),
                       {facts.at("name"), facts.at("low"), facts.at("high"), facts.at("counts")});
    if (kind == "text") sink_->text(facts.at("step"), {facts.at("name"), facts.at("text")});
  }
  void table(int64_t step, const NamedTable& table) override {
    tell_failure();
    if (sink_) sink_->table(step, table);
  }
  void finish(const std::string& reason) override {
    tell_failure();
    if (sink_) sink_->finish(reason);
  }

 private:
  void tell_failure() {
    if (failure_.empty()) return;
    fail(ExitCode::kStorage,
         "[log] t.log.{} is switched off until the next start: {}; the run continues, and metrics.jsonl has "
         "all "
         "numbers",
         kind_, std::exchange(failure_, ""));
  }

  std::unique_ptr<MetricSink> sink_;  // null after it could not start
  std::string kind_;
  int64_t attempt_;
  std::string failure_;  // of the start, until it was told
};

}  // namespace

std::vector<std::unique_ptr<Reporter>> make_sink_reporters(const std::vector<SinkConfig>& sinks,
                                                           const std::string& run_dir, FileOps& files) {
  const SinkPlace place = {run_dir, next_attempt(run_dir), files};
  std::vector<std::unique_ptr<Reporter>> reporters;
  for (const SinkConfig& sink : sinks)
    reporters.push_back(std::make_unique<SinkReporter>(
        std::visit([&](const auto& kind) { return make_sink(kind, place); }, sink.value), sink.kind(),
        place.attempt));
  return reporters;
}

std::unique_ptr<Reporter> make_run_reporter(const std::string& run_dir, const LogConfig& log,
                                            std::unique_ptr<Reporter> display, FileOps& files) {
  std::vector<std::unique_ptr<Reporter>> reporters = make_sink_reporters(log.sinks, run_dir, files);
  reporters.push_back(make_file_reporter(run_dir, files));
  if (display) reporters.push_back(std::move(display));
  return make_tee(std::move(reporters));
}

}  // namespace tycho
