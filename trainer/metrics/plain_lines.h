// The key=value lines that a pipe, a Slurm log and log.txt get. Torch-free.
#pragma once
#include <string>

#include "trainer/metrics/step_metrics.h"

namespace tycho {

/// What runs, and what it will take. Two lines, without the last newline, as all of these.
std::string banner_lines(const RunInfo& run);
/// step=10/600 loss=6.881 lr=0.0003 grad_norm=1.2 tokens_per_s=8123 tflops=0.18 tflops_causal=0.17 mfu=n/a
/// mfu_causal=n/a mem=1.50GB wait=0.3% eta=0:41:12 tokens=40960
std::string step_line(const StepMetrics& metrics, int64_t total_steps);
/// event=checkpoint text="step 1000 saved"
std::string event_line(const std::string& kind, const std::string& text);
std::string end_line(const std::string& reason);

}  // namespace tycho
