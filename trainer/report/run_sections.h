// Sections of the page about runs that need no scripts: configurations and generated texts. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/report/run_summary.h"

namespace tycho {

/// Returns the keys whose values differ between the runs' recipes, with a column for each run; every key,
/// folded, for a single run. "" when no run has a recipe.
std::string configuration_section(const std::vector<RunSummary>& runs);

/// Returns the generated texts by prompt, the newest step first and the older ones folded. "" when there are
/// none.
std::string texts_section(const std::vector<RunSummary>& runs);

}  // namespace tycho
