// Reads what runs have added since the last page.
#include "trainer/sweep/sweep_runs.h"

namespace tycho {

std::optional<RunSummary> SweepRuns::read(const std::string& run_dir, const std::string& metric) {
  GrowingRun& run = runs_.try_emplace(run_dir, run_dir, std::vector<std::string>{metric}).first->second;
  try {
    run.update();
    return run.summary();
  } catch (const Error&) {
    runs_.erase(run_dir);
    return std::nullopt;
  }
}

}  // namespace tycho
