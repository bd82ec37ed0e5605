// The reporter of pipes and Slurm logs.
#include <utility>

#include "trainer/metrics/plain_lines.h"
#include "trainer/metrics/reporter.h"
#include "trainer/metrics/screen_writer.h"

namespace tycho {
namespace {

class PlainReporter : public Reporter {
 public:
  explicit PlainReporter(int fd) : screen_(fd) {}

  void run_start(const RunInfo& run) override {
    total_steps_ = run.total_steps;
    shown_ = ShownMetrics(run.show);
    print(banner_lines(run));
  }
  void step(const StepMetrics& metrics, bool record) override {
    print_shown();
    shown_.step(metrics);
    recorded_ = record;
    step_ = metrics.step;
    if (record) print(step_line(metrics, total_steps_));
  }
  void metric(int64_t, const std::string& name, double value) override { shown_.record(name, value); }
  void event(const std::string& kind, const std::string& text, const Json& facts) override {
    shown_.event(kind, facts);
    if (kind != "histogram") print(event_line(kind, text));  // one for each parameter, and a name alone
  }
  void screen_warning(const std::string& text) override { print(event_line("warning", text)); }
  void run_end(const std::string& reason, std::optional<ExitCode> /*failure*/) override {
    print_shown();
    const std::string missing = shown_.missing_text();
    if (!missing.empty() && step_ > 0) print(event_line("warning", missing));
    print(end_line(reason));
  }

 private:
  /// Prints the shown metrics of a step. Called at the next step or the end of the run, after the callbacks
  /// of the step have recorded them.
  void print_shown() {
    if (!std::exchange(recorded_, false) || !shown_.take_changed()) return;
    const std::string lines = shown_lines(step_, total_steps_, shown_.all());
    if (!lines.empty()) print(lines);
  }

  void print(const std::string& lines) { screen_.print(lines + '\n'); }

  ScreenWriter screen_;
  int64_t total_steps_ = 0, step_ = 0;
  bool recorded_ = false;  // the last step was one of log.every
  ShownMetrics shown_;
};

}  // namespace

std::unique_ptr<Reporter> make_plain_reporter(int fd) { return std::make_unique<PlainReporter>(fd); }

}  // namespace tycho
