// Runs side by side, in the columns of published scaling tables. Torch-free.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/metrics/curve.h"
#include "trainer/report/run_summary.h"

namespace tycho {

/// Compares one run with the one of the fewest ranks whose tokens cost as much: the same model, seq_len and
/// precision. None without another.
struct RunScaling {
  std::optional<double> speed_up;  // of the whole run: runtimes, where both trained as many tokens themselves
  std::optional<double> efficiency;  // tokens per second and rank, over the other's
};

/// In the order of the runs.
std::vector<RunScaling> scaling_of(const std::vector<RunSummary>& runs);

/// The first row names the columns; those that no run has are left out.
std::vector<std::vector<std::string>> run_table(const std::vector<RunSummary>& runs);
/// Every number in its unit, unknown ones as null.
Json runs_json(const std::vector<RunSummary>& runs);

/// Tokens per second over ranks, by the number of ranks; the fastest of equal ones. `y` of fewer than two
/// points is empty.
Curve scaling_curve(const std::vector<RunSummary>& runs);

}  // namespace tycho
