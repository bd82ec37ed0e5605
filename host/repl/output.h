// Where the text of a prompt goes, and what a run reports while it trains there: events as lines, steps as
// one line that is redrawn.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "trainer/metrics/reporter.h"

namespace tycho {

class ReplOutput {
 public:
  using Sink = std::function<void(std::string_view text)>;
  /// `redraws` is true when the sink writes to a terminal.
  ReplOutput(Sink sink, bool redraws) : sink_(std::move(sink)), redraws_(redraws) {}
  void print(std::string_view text);
  /// Draws the line that is redrawn in place, at most ten times a second.
  void draw(const std::string& text);
  void clear();

 private:
  Sink sink_;
  bool redraws_, drawn_ = false;
  double last_s_ = 0;
};

/// `output` must outlive the reporter.
std::unique_ptr<Reporter> make_repl_reporter(ReplOutput& output);

/// Returns the seconds of a monotonic clock.
double monotonic_seconds();

}  // namespace tycho
