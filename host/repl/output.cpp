// Redraws the line of a step at most ten times a second; events are lines of their own.
#include "host/repl/output.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "host/standard_streams.h"
#include "trainer/base/secrets.h"
#include "trainer/metrics/format.h"

namespace tycho {
namespace {

constexpr double kRedrawSeconds = 0.1;

class ReplReporter final : public Reporter {
 public:
  explicit ReplReporter(ReplOutput& output) : output_(output) {}
  void run_start(const RunInfo& run) override { total_steps_ = run.total_steps; }
  void step(const StepMetrics& metrics, bool) override {
    output_.draw(fmt::format("  {}/{} ba  loss {}  {} s/ba", metrics.step, total_steps_,
                             metric_text(metrics.loss), short_text(metrics.step_s)));
  }
  void event(const std::string& kind, const std::string& text, const Json&) override {
    const bool loud = kind == "warning" || kind == "error";
    output_.print(fmt::format("  {}{}\n", loud ? kind + ": " : "", printable(text, locale_is_utf8())));
  }

 private:
  ReplOutput& output_;
  int64_t total_steps_ = 0;
};

}  // namespace

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void ReplOutput::print(std::string_view text) {
  clear();
  if (text.empty()) return;
  sink_(without_secrets(std::string(text)));
}

void ReplOutput::draw(const std::string& text) {
  const double now = monotonic_seconds();
  if (!redraws_ || now - last_s_ < kRedrawSeconds) return;
  last_s_ = now, drawn_ = true;
  draw_on(stdout, "\r\033[K", text);
}

void ReplOutput::clear() {
  if (drawn_) draw_on(stdout, "\r\033[K");
  drawn_ = false;
}

std::unique_ptr<Reporter> make_repl_reporter(ReplOutput& output) {
  return std::make_unique<ReplReporter>(output);
}

}  // namespace tycho
