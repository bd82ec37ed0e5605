// Keeps the live view on a terminal up to date, in place.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <utility>

#include "trainer/base/environment.h"
#include "trainer/base/seconds_since.h"
#include "trainer/base/text/json_number.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/live_view.h"
#include "trainer/metrics/reporter.h"
#include "trainer/metrics/screen_writer.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;

/// Returns "14:32", with the date when it is not today.
std::string time_of_day_in(double seconds) {
  if (!std::isfinite(seconds) || seconds > 1e9) return "";
  const std::time_t now = std::time(nullptr), then = now + static_cast<std::time_t>(seconds);
  std::tm today{}, day{};
  localtime_r(&now, &today);
  localtime_r(&then, &day);
  const bool same_day = today.tm_yday == day.tm_yday && today.tm_year == day.tm_year;
  return same_day ? fmt::format("{:%H:%M}", day) : fmt::format("{:%d %b %H:%M}", day);
}

/// A block of lines that is redrawn in place.
class Screen {
 public:
  explicit Screen(int fd) : fd_(fd), writer_(fd) {}

  /// Returns the width of the terminal, read before each drawing so that resizing needs no signal. Leaves one
  /// column free, because terminals differ in where the cursor is after a character in the last one.
  int width() const {
    winsize size{};
    const bool known = ::ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return std::max(20, known ? size.ws_col - 1 : 79);
  }

  void show(const std::vector<ViewLine>& lines) {
    std::string out = "\r";
    const int up = rows_on_screen() - 1;
    if (up > 0) out += fmt::format("\x1b[{}A", up);
    std::vector<int> widths;
    for (const ViewLine& line : lines) {
      out += (widths.empty() ? "" : "\r\n") + line.text + "\x1b[K";
      widths.push_back(line.columns);
    }
    // The cursor waits at the beginning of the last line: a ^C that the terminal echoes, and what is said of
    // it, are drawn over, and neither makes a line longer than the screen.
    if (writer_.draw(out + "\x1b[J\r")) widths_ = std::move(widths);
  }
  /// Prints a separate line before anything is drawn.
  void print_line(const std::string& text) { writer_.print(text + "\r\n"); }
  /// Keeps the drawn lines and moves the cursor below them.
  void release() {
    if (!widths_.empty()) writer_.print("\r\n");
    widths_.clear();
  }

 private:
  /// Returns the rows that our lines take, since a terminal that became narrower has wrapped them.
  int rows_on_screen() const {
    const int columns = width() + 1;
    int rows = 0;
    for (const int line : widths_) rows += std::max(1, (line + columns - 1) / columns);
    return rows;
  }

  int fd_;
  ScreenWriter writer_;
  std::vector<int> widths_;  // widths of the shown lines
};

class TerminalReporter : public Reporter {
 public:
  explicit TerminalReporter(int fd)
      : screen_(fd), unicode_(locale_is_utf8()), colour_(environment_variable("NO_COLOR").empty()) {}
  ~TerminalReporter() override { screen_.release(); }

  void run_start(const RunInfo& run) override {
    state_.run = run;
    shown_ = ShownMetrics(run.show);
    started_ = Clock::now();
    running_ = true;
    draw();
  }

  void step(const StepMetrics& metrics, bool) override {
    constexpr double kSmoothing = 0.1;
    const double wait = metrics.step_s > 0 ? metrics.data_wait_s / metrics.step_s : 0;
    state_.data_wait_share += (state_.now.step == 0 ? 1 : kSmoothing) * (wait - state_.data_wait_share);
    state_.now = metrics;
    state_.losses.add(metrics.loss);
    shown_.step(metrics);
    draw_when_due();
  }

  void metric(int64_t, const std::string& name, double value) override {
    shown_.record(name, value);
    draw_when_due();
  }

  void event(const std::string& kind, const std::string& text, const Json& facts) override {
    if (kind == "eval" && facts.at("total").get<bool>()) state_.eval_loss = number_in(facts, "loss");
    if (kind == "resume") state_.run.first_step = facts.at("step");
    if (kind == "histogram") return;  // one for each parameter, and a name alone
    shown_.event(kind, facts);
    if (state_.run.run_name.empty())
      return screen_.print_line(printable(text, unicode_));  // nothing is drawn yet
    const bool warning = kind == "warning" || kind == "error";
    Dated& slot = warning                ? warning_
                  : kind == "checkpoint" ? checkpoint_
                  : kind == "eval"       ? evaluation_
                                         : event_;
    slot.text = warning ? fmt::format("step {}: {}", state_.now.step, text) : text;
    // The line begins with "eval": 80 columns hold the numbers, too.
    constexpr std::string_view kSaidBefore = " evaluated";
    if (const size_t at = text.find(kSaidBefore); kind == "eval" && at != std::string::npos)
      slot.text.erase(at, kSaidBefore.size());
    slot.at = Clock::now();
    draw_when_due();
  }

  void screen_warning(const std::string& text) override { event("warning", text, Json::object()); }

  void run_end(const std::string& reason, std::optional<ExitCode> /*failure*/) override {
    state_.end_reason = reason;
    if (const std::string missing = shown_.missing_text(); !missing.empty() && state_.now.step > 0)
      warning_ = {missing, Clock::now()};
    draw();
    screen_.release();
    running_ = false;
  }

 private:
  struct Dated {
    std::string text;
    Clock::time_point at;
    Notice notice() const { return {text, seconds_since(at)}; }
  };

  void draw_when_due() {
    constexpr double kShortestPause_s = 0.1;
    if (seconds_since(drawn_) >= kShortestPause_s) draw();
  }

  void draw() {
    if (!running_) return;
    drawn_ = Clock::now();
    state_.elapsed_s = seconds_since(started_);
    state_.ends_at = time_of_day_in(state_.now.eta_s);
    state_.checkpoint = checkpoint_.notice();
    state_.evaluation = evaluation_.notice();
    state_.event = event_.notice();
    state_.shown = shown_.all();
    state_.warning = warning_.notice();
    screen_.show(draw_view(state_, {screen_.width(), unicode_, colour_}));
  }

  Screen screen_;
  bool unicode_, colour_;
  bool running_ = false;
  ViewState state_;
  ShownMetrics shown_;
  Dated checkpoint_, evaluation_, event_, warning_;
  Clock::time_point started_, drawn_;
};

}  // namespace

bool can_redraw() {
  const std::string term = environment_variable("TERM");
  return !term.empty() && term != "dumb";
}

std::unique_ptr<Reporter> make_terminal_reporter(int fd) {
  if (!can_redraw()) return make_plain_reporter(fd);
  return std::make_unique<TerminalReporter>(fd);
}

}  // namespace tycho
