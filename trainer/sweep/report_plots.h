// The drawings of a sweep's report. Torch-free.
#pragma once
#include <string>

#include "trainer/sweep/board.h"
#include "trainer/sweep/folder.h"
#include "trainer/sweep/sweep_runs.h"

namespace tycho {

/// Returns one drawing for each key of the space: its value against the metric.
std::string marginal_plots(const Board& board);
/// Returns every trial as a line over all keys to the metric.
std::string parallel_plot(const Board& board);
/// Returns the training loss and the metric over steps as plots to zoom, best trials darkest.
std::string curve_plots(const SweepFolder& folder, SweepRuns& runs, const SweepPageOptions& options);
/// Returns a bar for each key; "" for too few trials.
std::string importance_bars(const Board& board);
/// Returns how many trials reached each rung; "" for a search without rungs.
std::string rung_plot(const Board& board);
/// Returns the hours spent, by the trials' final states.
std::string cost_plot(const Board& board);

}  // namespace tycho
