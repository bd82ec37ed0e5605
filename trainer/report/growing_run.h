// A run folder, read while it grows. Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/metrics/line_tail.h"
#include "trainer/report/run_events.h"
#include "trainer/report/run_numbers.h"
#include "trainer/report/run_summary.h"

namespace tycho {

/// Reads a run folder: first all of it, then what was added. Owned by one thread.
class GrowingRun {
 public:
  /// Curves end at `last_step`; `patterns` as in summarize_run.
  explicit GrowingRun(const std::string& folder, std::vector<std::string> patterns = {},
                      int64_t last_step = INT64_MAX);

  /// Reads what is new; returns true when there was anything. Begins again when a file was cut or replaced.
  /// Throws Error (kUnusable) that names the folder when no run was started in it.
  bool update();
  /// Requires a call of update().
  RunSummary summary() const;

 private:
  bool read();
  void begin_again(std::map<int64_t, int64_t> kept);

  std::string folder_;
  std::vector<std::string> patterns_;
  int64_t last_step_;
  LineTail events_file_, metrics_file_, evals_file_;
  RunEvents events_;
  RunNumbers numbers_;
};

}  // namespace tycho
