// What a run reports while the REPL trains it.
#include "host/repl/progress.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "trainer/metrics/format.h"

namespace tycho {
namespace {

constexpr double kRedrawSeconds = 0.1;

class ReplReporter final : public Reporter {
 public:
  explicit ReplReporter(ProgressLine& line) : line_(line) {}
  void run_start(const RunInfo& run) override { total_steps_ = run.total_steps; }
  void step(const StepMetrics& metrics, bool) override {
    line_.draw(fmt::format("  {}/{} ba  loss {}  {} s/ba", metrics.step, total_steps_,
                           metric_text(metrics.loss), short_text(metrics.step_s)));
  }
  void event(const std::string& kind, const std::string& text, const Json&) override {
    line_.clear();
    const bool loud = kind == "warning" || kind == "error";
    fmt::print("  {}{}\n", loud ? kind + ": " : "", printable(text, locale_is_utf8()));
  }

 private:
  ProgressLine& line_;
  int64_t total_steps_ = 0;
};

}  // namespace

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void ProgressLine::draw(const std::string& text) {
  const double now = monotonic_seconds();
  if (!visible_ || now - last_s_ < kRedrawSeconds) return;
  last_s_ = now, drawn_ = true;
  fmt::print("\r\033[K{}", text);
  std::fflush(stdout);
}

void ProgressLine::clear() {
  if (drawn_) fmt::print("\r\033[K");
  drawn_ = false;
}

std::unique_ptr<Reporter> make_repl_reporter(ProgressLine& line) {
  return std::make_unique<ReplReporter>(line);
}

}  // namespace tycho
