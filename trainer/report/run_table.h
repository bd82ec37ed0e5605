// Runs side by side, in the columns of published scaling tables. Torch-free.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/metrics/curve.h"
#include "trainer/report/run_summary.h"

namespace tycho {

/// Compares one run with the run of the fewest ranks whose tokens cost the same: equal model, seq_len and
/// precision. nullopt when there is no other.
struct RunScaling {
  std::optional<double>
      speed_up;  // ratio of the runtimes, when both themselves trained the same number of tokens
  std::optional<double> efficiency;  // tokens per second and rank, relative to the other's
};

/// Returns the scaling of each run, in their order.
std::vector<RunScaling> scaling_of(const std::vector<RunSummary>& runs);

/// Returns the rows of the table, header first, without columns that are empty for all runs.
std::vector<std::vector<std::string>> run_table(const std::vector<RunSummary>& runs);
/// Returns every number in its unit, unknown ones as null.
Json runs_json(const std::vector<RunSummary>& runs);

/// Returns tokens per second by number of ranks; the fastest run of each number. `y` is empty for fewer than
/// two points.
Curve scaling_curve(const std::vector<RunSummary>& runs);

}  // namespace tycho
