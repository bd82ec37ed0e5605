// Turns step times into tokens/s, FLOP/s, MFU and an ETA.
#include "trainer/metrics/throughput.h"

namespace tycho {

Work work_of(int64_t tokens, double flops_per_token, double flops_per_token_causal) {
  const auto count = static_cast<double>(tokens);
  return {tokens, flops_per_token * count, flops_per_token_causal * count};
}

Speed speed_of(int64_t tokens, double seconds, const RunInfo& run) {
  return speed_of(work_of(tokens, run.flops_per_token_full, run.flops_per_token_causal), seconds, run);
}

Speed speed_of(const Work& work, double seconds, const RunInfo& run) {
  Speed speed;
  if (seconds <= 0) return speed;
  speed.tokens_per_s = static_cast<double>(work.tokens) / seconds;
  const double flops = work.flops / seconds, flops_causal = work.flops_causal / seconds;
  speed.tflops = flops / 1e12;
  speed.tflops_causal = flops_causal / 1e12;
  if (run.peak_flops) {
    speed.mfu = flops / *run.peak_flops;
    speed.mfu_causal = flops_causal / *run.peak_flops;
  }
  return speed;
}

Throughput::Throughput(const RunInfo& run, int64_t window) : run_(run), window_(window) {}

void Throughput::add_step(const Work& work, double step_s) {
  if (num_steps_ == 1) steps_.clear();
  steps_.push_back({work, step_s});
  if (static_cast<int64_t>(steps_.size()) > window_) steps_.pop_front();
  ++num_steps_;
}

void Throughput::add_pause(double seconds) { pause_s_ += seconds; }

Throughput::Step Throughput::total() const {
  Step sum{{}, 0};
  for (const Step& step : steps_) {
    sum.work.tokens += step.work.tokens;
    sum.work.flops += step.work.flops;
    sum.work.flops_causal += step.work.flops_causal;
    sum.seconds += step.seconds;
  }
  return sum;
}

Speed Throughput::speed() const {
  const Step sum = total();
  return speed_of(sum.work, sum.seconds, run_);
}

double Throughput::eta_s() const {
  const int64_t steps_left = run_.total_steps - run_.first_step - num_steps_;
  if (steps_.empty() || steps_left <= 0) return 0;
  const double step_s = total().seconds / static_cast<double>(steps_.size());
  const double pause_s = pause_s_ / static_cast<double>(num_steps_);
  return static_cast<double>(steps_left) * (step_s + pause_s);
}

void Throughput::fill(StepMetrics& metrics) const {
  const Speed now = speed();
  metrics.tokens_per_s = now.tokens_per_s;
  metrics.tflops = now.tflops;
  metrics.tflops_causal = now.tflops_causal;
  metrics.mfu = now.mfu;
  metrics.mfu_causal = now.mfu_causal;
  metrics.eta_s = eta_s();
}

}  // namespace tycho
