// Runs side by side for `tycho report` and `tycho bench scale`: read, followed, shown.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trainer/report/growing_run.h"
#include "trainer/report/run_summary.h"

namespace tycho {

/// Reads runs, and the parents of forks that still exist, and then what was added to them.
class RunFollower {
 public:
  /// `patterns` name metrics whose curves are read in addition to the standard ones. Throws Error (kUsage)
  /// for no folder.
  explicit RunFollower(const std::vector<std::string>& folders, std::vector<std::string> patterns = {});
  /// Reads what is new. Throws Error: kUsage for a pattern that no metric matches; kUnusable for a folder
  /// that holds no run.
  void update();
  /// Summaries of the folders, in order.
  const std::vector<RunSummary>& runs() const { return runs_; }
  /// Summaries of parents up to the step where their forks begin, by the fork's folder.
  const std::map<std::string, RunSummary>& parents() const { return parents_; }

 private:
  std::vector<std::string> patterns_;
  std::vector<GrowingRun> readers_;
  std::map<std::pair<std::string, int64_t>, GrowingRun> parent_readers_;  // by folder and last step
  std::vector<RunSummary> runs_;
  std::map<std::string, RunSummary> parents_;
};

/// Prints the table of runs; after it, when runs have different numbers of ranks, tokens per second over
/// ranks, and for a single run its loss.
void print_runs(const std::vector<RunSummary>& runs);

}  // namespace tycho
