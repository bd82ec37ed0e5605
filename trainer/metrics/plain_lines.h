// The key=value lines of a pipe, a Slurm log and log.txt. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/metrics/shown_metrics.h"
#include "trainer/metrics/step_metrics.h"

namespace tycho {

/// Maximum width of a line, except for a single longer field or text.
inline constexpr size_t kPlainColumns = 80;

/// Returns the facts of the run and its expected cost. Ends without a newline, like all functions here.
std::string banner_lines(const RunInfo& run);
/// Returns the line of a step, with values in fixed columns; an unknown number has none. All numbers are in
/// metrics.jsonl.
/// step=10     loss=6.881  lr=0.0003  grad=1.2   tok/s=8123  mfu=41.1% eta=0:41:12
std::string step_line(const StepMetrics& metrics, int64_t total_steps);
/// Returns the known numbers of log.show on lines of their own: step=10     loss_ema=6.9 eval.loss=7.012
std::string shown_lines(int64_t step, int64_t total_steps, const std::vector<ShownMetric>& shown);
/// Returns event=checkpoint text="step 1000 saved".
std::string event_line(const std::string& kind, const std::string& text);
std::string end_line(const std::string& reason);

}  // namespace tycho
