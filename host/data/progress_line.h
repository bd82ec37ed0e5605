// Progress of a long command, for a person at a terminal and in the log of a batch job.
#pragma once
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>

namespace tycho {

/// Shows one line that is overwritten at a terminal, and a line now and then elsewhere. Used by one thread at
/// a time.
class ProgressLine {
 public:
  explicit ProgressLine(FILE* out = stderr, std::chrono::duration<double> every = std::chrono::minutes(1));

  /// Calls `text` when a line is due, and shows it.
  void show(const std::function<std::string()>& text);
  /// Removes the line before other output is written.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  FILE* out_;
  std::chrono::duration<double> every_;
  bool is_terminal_;
  Clock::time_point last_ = Clock::now();  // short commands show nothing in a log
};

}  // namespace tycho
