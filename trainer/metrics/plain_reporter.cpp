// The reporter of pipes and Slurm logs.
#include <unistd.h>

#include <cerrno>

#include "trainer/metrics/plain_lines.h"
#include "trainer/metrics/reporter.h"

namespace tycho {
namespace {

class PlainReporter : public Reporter {
 public:
  explicit PlainReporter(int fd) : fd_(fd) {}

  void run_start(const RunInfo& run) override {
    total_steps_ = run.total_steps;
    print(banner_lines(run));
  }
  void step(const StepMetrics& metrics, bool record) override {
    if (record) print(step_line(metrics, total_steps_));
  }
  void event(const std::string& kind, const std::string& text, const Json&) override {
    print(event_line(kind, text));
  }
  void run_end(const std::string& reason) override { print(end_line(reason)); }

 private:
  /// A reader that went away does not stop a run: what cannot be written is dropped.
  void print(std::string lines) const {
    lines += '\n';
    size_t done = 0;
    while (done < lines.size()) {
      const ssize_t n = ::write(fd_, lines.data() + done, lines.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;
      done += static_cast<size_t>(n);
    }
  }

  int fd_;
  int64_t total_steps_ = 0;
};

}  // namespace

std::unique_ptr<Reporter> make_plain_reporter(int fd) { return std::make_unique<PlainReporter>(fd); }

}  // namespace tycho
