// The checkpoints of a run that goes on in another process, one after the other.
#pragma once
#include <functional>
#include <string>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/session/engine.h"

namespace tycho {

/// Calls `take` once for every checkpoint in `run_dir` that `is_wanted`, oldest first, and waits for more
/// until the run has ended, whether it is resumed later or not. A run whose process is gone without recording
/// its end counts as ended when it is not started again within RunLock::kStale_s. May start before the run.
/// Skips a checkpoint that ckpt.keep removes before or while it is taken, with a line on standard error.
/// Returns the exit code: 0, or 128 + the signal in `stop`. Passes on what `take` throws.
int follow_checkpoints(const std::string& run_dir, const StopFlag& stop,
                       const std::function<bool(const CheckpointInfo&)>& is_wanted,
                       const std::function<void(const CheckpointInfo&)>& take);

/// Prints that a checkpoint is skipped because it has no average of the weights.
void skip_without_average(const CheckpointInfo& info);

/// Evaluates every checkpoint of the run that request.path names, adds its numbers to evals.jsonl there under
/// the names of metrics.jsonl, and prints a line for each. Skips steps that evals.jsonl already has for the
/// weights that request.ema selects.
int follow_evaluations(EvalRequest request, const StopFlag& stop);

}  // namespace tycho
