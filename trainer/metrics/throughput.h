// Speed and remaining time of a run, from the times of its steps. Torch-free.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>

#include "trainer/metrics/step_metrics.h"

namespace tycho {

struct Speed {
  double tokens_per_s = 0;
  double tflops = 0;  // counts full attention
  double tflops_causal = 0;
  std::optional<double> mfu;  // tflops as a share of the peak; nullopt when the peak is unknown
  std::optional<double> mfu_causal;
};

/// The work of some steps, over all ranks.
struct Work {
  int64_t tokens = 0;
  double flops = 0, flops_causal = 0;
};
Work work_of(int64_t tokens, double flops_per_token, double flops_per_token_causal);

/// Returns the speed of `work` done in `seconds`, with the peak of `run`. All zero when `seconds` is 0.
Speed speed_of(const Work& work, double seconds, const RunInfo& run);
/// Returns the speed of `tokens` tokens in rows of seq_len.
Speed speed_of(int64_t tokens, double seconds, const RunInfo& run);

/// Measures one process of a run.
class Throughput {
 public:
  /// Speed and ETA are means over the last `window` steps.
  explicit Throughput(const RunInfo& run, int64_t window = 20);

  /// Adds a step that took `step_s` seconds, including its data wait. The first step of a process includes
  /// lazy setup, so it counts only until there is a second one.
  void add_step(const Work& work, double step_s);
  /// Adds the time of an evaluation, a checkpoint or a callback: not part of the speed, but expected again in
  /// the ETA.
  void add_pause(double seconds);

  Speed speed() const;
  /// Returns the seconds until step run.total_steps at the pace of the window, plus the pauses per step so
  /// far. Returns 0 before the first step and after the last.
  double eta_s() const;
  /// Sets speed, MFU and ETA in the metrics of the step that was added last.
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
