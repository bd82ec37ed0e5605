// Runs side by side for `tycho report` and `tycho bench scale`: read, shown, written.
#pragma once
#include <string>
#include <vector>

#include "trainer/report/run_summary.h"

namespace tycho {

/// Of each folder, in their order. Throws Error: kUsage for none, kUnusable for one that holds no run.
std::vector<RunSummary> read_runs(const std::vector<std::string>& folders);

/// The table; then, where there are runs of several numbers of ranks, tokens per second over ranks, and for a
/// single run its loss.
void print_runs(const std::vector<RunSummary>& runs);

}  // namespace tycho
