// Runs on one page of HTML: their table, curves, speed and scaling, and below them benchmarks. Torch-free.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "trainer/report/bench_file.h"
#include "trainer/report/run_summary.h"

namespace tycho {

/// Options of a page of runs.
struct RunPageOptions {
  bool watched = false;  // the page reloads itself when its file has another stamp
  std::string stamp;     // different each time that the file is written; digits
  double smoothing = 0;  // weight of the past in a moving average, 0 (none) to below 1, like in TensorBoard
  std::vector<std::string> chosen;            // shell patterns of metrics that come first
  std::map<std::string, RunSummary> parents;  // by the fork's folder, up to where it begins
};

/// Returns a page of HTML without further files. Requires at least one run or benchmark. Has plots of every
/// metric of a run's `curves`.
std::string run_page(const std::vector<RunSummary>& runs, const std::vector<BenchFile>& benches = {},
                     const RunPageOptions& options = {});

}  // namespace tycho
