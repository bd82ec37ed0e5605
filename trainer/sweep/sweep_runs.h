// The runs of a sweep, as its pages show them.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "trainer/report/growing_run.h"
#include "trainer/report/run_summary.h"

namespace tycho {

/// Options of the page about a sweep.
struct SweepPageOptions {
  bool watched = false;  // the page reloads itself when its file has another stamp
  std::string stamp;     // different each time that the file is written; digits
};

/// The runs of a sweep whose curves pages show. Each page reads only what they have added since the last one.
class SweepRuns {
 public:
  /// Returns the run in a folder so far; nullopt when none was started there, or the folder was removed.
  std::optional<RunSummary> read(const std::string& run_dir, const std::string& metric);

 private:
  std::map<std::string, GrowingRun> runs_;  // by folder
};

}  // namespace tycho
