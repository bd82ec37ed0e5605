// The results and costs of a run, read from its folder. Torch-free.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/metrics/curve.h"
#include "trainer/report/thin_curve.h"

namespace tycho {

/// A text that a callback recorded, such as one that the model generated.
struct RecordedText {
  int64_t step = 0;
  std::string prompt, text;  // the name under which it was recorded is its prompt
};

/// Numbers that the folder does not have are nullopt or 0. The facts and the end are those of the newest
/// start that did a step, or of the newest start if none did.
struct RunSummary {
  std::string folder, name, device, precision;
  std::optional<int64_t>
      num_nodes;  // from Slurm, torchrun or tycho launch; nullopt for a single rank without a launcher
  int64_t num_ranks = 1, num_params = 0, num_attempts = 0;
  int64_t step = 0, total_steps = 0, tokens = 0;
  int64_t first_step = 0;  // first step of its first attempt; more than 0 for a fork
  int64_t own_tokens = 0;  // trained by the run itself, without its parent's
  std::string parent;      // folder of the run whose checkpoint it began from; "" for none
  std::string work;        // model, seq_len and precision, which set the cost of a token; "" when unknown
  double runtime_s = 0;    // sum over attempts, each from its start to its last record
  std::optional<double> tokens_per_s;            // median of the newest attempt without its first quarter
  std::optional<double> mfu;                     // median of the same steps
  std::optional<double> data_wait_share;         // share of the time of those steps
  int64_t memory_bytes = 0;                      // peak of rank 0's device
  int64_t planned_memory_bytes = 0;              // planned peak of it
  int64_t checkpoint_bytes = 0;                  // size of the newest checkpoint
  std::optional<double> loss;                    // mean of the last tenth of the steps
  std::optional<double> eval_loss;               // newest value
  std::optional<std::string> evaluated_weights;  // by the run itself: "ema" for their average, else ""
  std::optional<double> accuracy;  // mean of the newest values of all metrics with "accuracy" in their names
  std::string end;                 // why it ended; "" while it runs, or after a kill
  std::map<std::string, ThinCurve> curves;  // by metric, without empty ones, in at most kMostBuckets buckets
  std::vector<RecordedText> texts;          // in the order of steps, those of steps that were lost left out
  Json recipe;                              // the resolved one; null when the folder has none
  Curve tokens_by_step, seconds_by_step;    // trained so far, at some of the steps; without the pauses
                                            // between attempts

  /// Returns the curve of a metric; empty when the run has none.
  const ThinCurve& curve(const std::string& metric) const;
};

/// Metrics that are always read: loss, eval.loss, lr, grad_norm, tokens_per_s.
const std::vector<std::string>& standard_metrics();

/// Reads a run folder once. `patterns` are shell patterns ("grad/*") of metrics whose curves are read in
/// addition to the standard ones. Throws Error (kUnusable) that names the folder when no run was started in
/// it.
RunSummary summarize_run(const std::string& folder, const std::vector<std::string>& patterns = {});

}  // namespace tycho
