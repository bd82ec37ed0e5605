// Runs on one page of HTML: their table, curves, speed and scaling, and below them benchmarks. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/report/bench_file.h"
#include "trainer/report/run_summary.h"

namespace tycho {

/// At least one of either. Needs no file beside it.
std::string run_page(const std::vector<RunSummary>& runs, const std::vector<BenchFile>& benches = {});

}  // namespace tycho
