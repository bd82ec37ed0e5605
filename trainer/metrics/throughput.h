// Speed and remaining time of a run, from the times of its steps. Torch-free.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>

#include "trainer/metrics/step_metrics.h"

namespace tycho {

struct Speed {
  double tokens_per_s = 0;
  double tflops = 0;  // full attention counted
  double tflops_causal = 0;
  std::optional<double> mfu;  // tflops as a share of the peak; none where the peak is unknown
  std::optional<double> mfu_causal;
};

/// What steps did, of all ranks together.
struct Work {
  int64_t tokens = 0;
  double flops = 0, flops_causal = 0;
};
Work work_of(int64_t tokens, double flops_per_token, double flops_per_token_causal);

/// The speed of `work` done in `seconds`, with the peak of `run`. All zero for no time.
Speed speed_of(const Work& work, double seconds, const RunInfo& run);
/// Of `tokens` in rows of seq_len.
Speed speed_of(int64_t tokens, double seconds, const RunInfo& run);

/// Follows one process of a run.
class Throughput {
 public:
  /// Speed and ETA are means over the last `window` steps.
  explicit Throughput(const RunInfo& run, int64_t window = 20);

  /// A step took `step_s`, its data wait included. The first step of a process pays for what is set up
  /// lazily: it counts until there is a second one.
  void add_step(const Work& work, double step_s);
  /// Evaluation, a checkpoint, a callback: not training, so not in the speed, but expected again in the ETA.
  void add_pause(double seconds);

  Speed speed() const;
  /// Seconds until step run.total_steps at the pace of the window, plus the pauses met so far per step. 0
  /// before the first step and after the last.
  double eta_s() const;
  /// Writes speed, MFU and ETA into the metrics of the step that was added last.
  void fill(StepMetrics& metrics) const;

 private:
  struct Step {
    Work work;
    double seconds;
  };
  Step total() const;

  RunInfo run_;
  int64_t window_;
  std::deque<Step> steps_;
  int64_t num_steps_ = 0;
  double pause_s_ = 0;
};

}  // namespace tycho
