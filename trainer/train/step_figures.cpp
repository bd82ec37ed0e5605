// Figures are of all ranks together, but for times, which are this rank's.
#include "trainer/train/step_figures.h"

#include <utility>

#include "trainer/comm/mesh.h"
#include "trainer/device/device.h"
#include "trainer/expression/loss_expression.h"

namespace tycho {

StepLosses step_losses(const std::vector<std::string>& terms, const double* sums, double token_weight) {
  StepLosses losses = {sums[0] * token_weight, sums[0] * token_weight, {}};
  if (terms.empty()) return losses;
  double total = 0;
  losses.named.emplace_back(kCrossEntropyName, losses.cross_entropy);
  for (size_t i = 0; i < terms.size(); ++i) {
    total += sums[i + 1];
    losses.named.emplace_back(term_output(terms[i]), sums[i + 1] * token_weight);
  }
  losses.loss = total * token_weight;
  return losses;
}

StepFigures::StepFigures(const RunInfo& run, const LoopContext& context, const ModelLayout& layout)
    : context_(context), layout_(layout), throughput_(run), loss_watch_(layout.vocab_size) {}

std::string StepFigures::record(const TrainState& state, const Batch& batch, StepMetrics step,
                                const StepLosses& losses, bool is_logged) {
  const int64_t tokens = batch.num_sequences * batch.seq_len * context_.mesh.group(kDataAxes).size();
  throughput_.add_step(work_of(tokens, layout_.flops_per_token_full(batch.seq_len),
                               layout_.flops_per_token_causal(batch.seq_len)),
                       step.step_s);
  step.step = state.step;
  step.tokens = state.tokens;
  step.samples = state.samples;
  step.epoch = state.data.epoch;
  step.data_wait_s = batch.wait_s;
  if (context_.world.size() > 1 && context_.device.is_cpu()) {
    const CommTime comm = process_progress().comm_time();
    step.comm_wait_s = comm.wait_s - comm_before_.wait_s;
    step.comm_s = comm.transfer_s - comm_before_.transfer_s;
  }
  step.memory_bytes = peak_memory_bytes(context_.device);
  throughput_.fill(step);
  newest_ = step;
  context_.reporter.step(step, is_logged);
  if (is_logged)
    for (const auto& [name, value] : losses.named) context_.reporter.metric(step.step, name, value);
  return loss_watch_.step(losses.cross_entropy, step.grad_norm, step.lr);
}

void StepFigures::restart(const RunInfo& run) {
  throughput_ = Throughput(run);
  loss_watch_ = LossWatch(layout_.vocab_size);
  newest_.reset();
}

StepMetrics StepFigures::now(const TrainState& state) const {
  if (newest_) return *newest_;
  StepMetrics metrics;
  metrics.step = state.step, metrics.tokens = state.tokens, metrics.samples = state.samples,
  metrics.epoch = state.data.epoch;
  return metrics;
}

}  // namespace tycho
