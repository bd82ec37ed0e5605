// Runs on one page of HTML: their table, curves, speed and scaling, and below them benchmarks. Torch-free.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "trainer/report/bench_file.h"
#include "trainer/report/run_summary.h"

namespace tycho {

/// What a page of runs shows beside the standard curves.
struct RunPageOptions {
  double smoothing = 0;  // weight of the past in a moving average, 0 (none) to below 1, as in TensorBoard
  std::map<std::string, RunSummary> parents;  // of forks, by folder: their curves lead to the fork's
};

/// Returns a page of HTML that needs no file beside it. Expects at least one run or benchmark. Every metric
/// of a run's `curves` is drawn.
std::string run_page(const std::vector<RunSummary>& runs, const std::vector<BenchFile>& benches = {},
                     const RunPageOptions& options = {});

}  // namespace tycho
