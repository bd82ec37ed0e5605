// What a run reports while the REPL trains it: events as lines, steps as one line that is redrawn.
#pragma once
#include <memory>

#include "trainer/metrics/reporter.h"

namespace tycho {

/// The line that is redrawn. Nothing is drawn where it is not a terminal.
class ProgressLine {
 public:
  explicit ProgressLine(bool visible) : visible_(visible) {}
  /// At most ten times a second.
  void draw(const std::string& text);
  void clear();

 private:
  bool visible_, drawn_ = false;
  double last_s_ = 0;
};

/// `line` outlives the reporter.
std::unique_ptr<Reporter> make_repl_reporter(ProgressLine& line);

/// Seconds of a clock that only goes forward.
double monotonic_seconds();

}  // namespace tycho
