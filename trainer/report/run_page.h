// Runs on one page of HTML: their table, curves, speed and scaling. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/report/run_summary.h"

namespace tycho {

/// At least one run. Needs no file beside it.
std::string run_page(const std::vector<RunSummary>& runs);

}  // namespace tycho
