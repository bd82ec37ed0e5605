// Passes on what sinks hear.
#include "trainer/metrics/sink.h"

#include <utility>
#include <variant>

#include "trainer/metrics/line_file.h"

namespace tycho {
namespace {

class SinkReporter final : public Reporter {
 public:
  explicit SinkReporter(std::unique_ptr<MetricSink> sink) : sink_(std::move(sink)) {}
  void run_start(const RunInfo& run) override { sink_->run_start(run); }
  void step(const StepMetrics& metrics, bool record) override {
    if (record) sink_->step(metrics);
  }
  void metric(int64_t step, const std::string& name, double value) override {
    sink_->metric(step, name, value);
  }
  void run_end(const std::string&) override { sink_->run_end(); }

 private:
  std::unique_ptr<MetricSink> sink_;
};

}  // namespace

std::vector<std::unique_ptr<Reporter>> make_sink_reporters(const std::vector<SinkConfig>& sinks,
                                                           const std::string& run_dir, FileOps& files) {
  const SinkPlace place = {run_dir, next_attempt(run_dir), files};
  std::vector<std::unique_ptr<Reporter>> reporters;
  for (const SinkConfig& sink : sinks)
    reporters.push_back(std::make_unique<SinkReporter>(
        std::visit([&](const auto& kind) { return make_sink(kind, place); }, sink.value)));
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
