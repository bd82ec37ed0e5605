// The figures of steps: speed, what is reported of the newest one, and warnings of training that learns
// nothing.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/rows/batch.h"
#include "trainer/layout/model_layout.h"
#include "trainer/metrics/step_metrics.h"
#include "trainer/metrics/throughput.h"
#include "trainer/rendezvous/progress.h"
#include "trainer/state/loss_watch.h"
#include "trainer/state/train_state.h"
#include "trainer/train/loop_context.h"

namespace tycho {

/// Means over the valid tokens of a global batch.
struct StepLosses {
  double loss = 0;           // what the step minimised
  double cross_entropy = 0;  // of the targets: the loss, where the recipe defines none
  std::vector<std::pair<std::string, double>> named;  // of a loss of the recipe's own, by name of the metric
};
/// Names the sums of a step: `sums` are of cross-entropies, and then of each term.
StepLosses step_losses(const std::vector<std::string>& terms, const double* sums, double token_weight);

/// Follows the steps of one process. Owned by the trainer's thread.
class StepFigures {
 public:
  /// The context and the layout outlive it.
  StepFigures(const RunInfo& run, const LoopContext& context, const ModelLayout& layout);

  /// Marks the start of a step.
  void begin_step() { comm_before_ = process_progress().comm_time(); }
  /// Reports the step that `state` has just counted, whose loss, lr, grad_norm and step_s are in `step`.
  /// `is_logged`: log.every says so. Returns a warning about the loss, or "".
  std::string record(const TrainState& state, const Batch& batch, StepMetrics step, const StepLosses& losses,
                     bool is_logged);
  /// Begins again, for other state.
  void restart(const RunInfo& run);

  /// Metrics of the newest step; nothing before the first step of this process, or since restart().
  const std::optional<StepMetrics>& newest() const { return newest_; }
  /// Returns newest(), or else the counts of `state` alone.
  StepMetrics now(const TrainState& state) const;
  Throughput& throughput() { return throughput_; }
  LossWatch& loss_watch() { return loss_watch_; }

 private:
  const LoopContext& context_;
  const ModelLayout& layout_;
  Throughput throughput_;
  LossWatch loss_watch_;
  std::optional<StepMetrics> newest_;
  CommTime comm_before_;  // at the beginning of the step
};

}  // namespace tycho
