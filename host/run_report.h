// Runs side by side for `tycho report` and `tycho bench scale`: read, shown, written.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "trainer/report/run_summary.h"

namespace tycho {

/// Returns the summary of each folder, in order, with the curves that `patterns` match in addition to the
/// standard ones. Throws Error: kUsage for no folder, or a pattern that no metric matches; kUnusable for a
/// folder that holds no run.
std::vector<RunSummary> read_runs(const std::vector<std::string>& folders,
                                  const std::vector<std::string>& patterns = {});

/// Returns the parents of forked runs that still exist, by folder.
std::map<std::string, RunSummary> read_parents(const std::vector<RunSummary>& runs,
                                               const std::vector<std::string>& patterns);

/// Prints the table of runs; after it, when runs have different numbers of ranks, tokens per second over
/// ranks, and for a single run its loss.
void print_runs(const std::vector<RunSummary>& runs);

}  // namespace tycho
