// The checkpoints of a run that goes on in another process, one after the other.
#pragma once
#include <functional>
#include <string>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/engine/engine.h"

namespace tycho {

/// Calls `take` for every checkpoint in `run_dir` that `is_wanted`, each once, the oldest first, and waits
/// for more until the run has ended, whether it is resumed later or not. A run whose process is gone without
/// recording its end counts as ended when it is not started again within RunLock::kStale_s. May begin before
/// the run. A checkpoint that ckpt.keep removes before or while it is taken is left out, with a line on
/// standard error. Returns the exit code: 0, or 128 + the signal in `stop`. Passes on what `take` throws.
int follow_checkpoints(const std::string& run_dir, const StopFlag& stop,
                       const std::function<bool(const CheckpointInfo&)>& is_wanted,
                       const std::function<void(const CheckpointInfo&)>& take);

/// Says that a checkpoint is left out because it keeps no average of the weights.
void skip_without_average(const CheckpointInfo& info);

/// Evaluates every checkpoint of the run that request.path names, and adds its numbers to evals.jsonl there
/// under the names that metrics.jsonl has; steps that are in it already are left out, by the weights that
/// request.ema names. Shows a line for each.
int follow_evaluations(EvalRequest request, const StopFlag& stop);

}  // namespace tycho
