// What a run took and reached, read from its folder. Torch-free.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/metrics/curve.h"

namespace tycho {

/// Numbers that the folder does not have are none or 0. Facts of a start, and how it ended, are those of the
/// newest start that did a step, or of the newest where none did.
struct RunSummary {
  std::string folder, name, device, precision;
  std::optional<int64_t> num_nodes;  // as Slurm, torchrun or tycho launch said; none for a single rank that
                                     // nobody launched
  int64_t num_ranks = 1, num_params = 0, num_attempts = 0;
  int64_t step = 0, total_steps = 0, tokens = 0;
  int64_t first_step = 0;              // where its first attempt began; more than 0 for a fork
  int64_t own_tokens = 0;              // trained by the run itself: a fork's parent trained the others
  std::string parent;                  // folder of the run from whose checkpoint it began; "" for none
  std::string work;                    // what a token costs: model, seq_len and precision; "" when unknown
  double runtime_s = 0;                // of all attempts together: from each start to the last sign of it
  std::optional<double> tokens_per_s;  // steady: the median of the newest attempt without its first quarter
  std::optional<double> mfu;           // likewise
  std::optional<double> data_wait_share;  // of the time of those steps
  int64_t memory_bytes = 0;               // peak of rank 0's device
  int64_t checkpoint_bytes = 0;           // of the newest checkpoint
  std::optional<double> loss;             // mean of the last tenth of the steps
  std::optional<double> eval_loss;        // newest
  std::optional<double> accuracy;  // mean of the newest values of all metrics with "accuracy" in their names
  std::string end;                 // why it ended; "" while it goes on, or after a kill
  std::map<std::string, Curve> curves;  // by metric, in the order of steps; those without points are left out

  /// Returns the curve of a metric; an empty one when the run has none.
  const Curve& curve(const std::string& metric) const;
};

/// Metrics that are always read: loss, eval.loss, lr, grad_norm, tokens_per_s.
const std::vector<std::string>& standard_metrics();

/// Reads a run folder. `patterns`: metrics whose curves are read beside the standard ones, as shells match
/// names
/// ("grad/*"). Throws Error (kUnusable) for a folder in which no run was started, and names it.
RunSummary summarize_run(const std::string& folder, const std::vector<std::string>& patterns = {});

}  // namespace tycho
