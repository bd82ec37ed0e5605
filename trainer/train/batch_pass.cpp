// Losses are summed in the order of gradients.
#include "trainer/train/batch_pass.h"

#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/random/philox.h"
#include "trainer/kernels/host_copies.h"
#include "trainer/sharding/tree_sum.h"
#include "trainer/train/micro_batches.h"
#include "trainer/train/train_units.h"

namespace tycho {
namespace {

// Sums of weights are exact, so that they do not depend on how ranks divide the batch: see Batch::weights.
// Every rank gets the same sum, so all of them end where there is nothing to take a mean of; the guard skips
// the step where it skips what is not finite.
float weight_of_token(const Batch& batch, Communicator& data_ranks, GuardAction guard, int64_t step) {
  Tensor weight_1 = at::full({1}, weight_of(batch), at::TensorOptions().dtype(at::kDouble));
  data_ranks.all_reduce(weight_1);
  const double weight = weight_1.item<double>();
  if (weight == 0 && guard == GuardAction::kStop)
    fail(ExitCode::kUnusable,
         "[train_data] step {}: expected a global batch with {}, got none; take such rows out of the data, "
         "raise global_batch, or skip such steps with guard.action = \"skip\"",
         step, batch.weights.empty() ? "targets" : "targets whose weight is not 0");
  return static_cast<float>(1.0 / weight);
}

/// Returns statistics of the residual stream after each block, over this rank's part of the first tokens of
/// the micro-batch; null for blocks that another stage computes.
Json stream_statistics(Model& model, int64_t num_tokens) {
  Json list = Json::array();
  for (int64_t i = 0; i <= model.layout().num_blocks; ++i) {
    if (!model.has_stream(i)) {
      list.push_back(Json::object());
      continue;
    }
    const Tensor all = model.stream(i);
    const int64_t here = std::clamp<int64_t>(num_tokens - model.first_token(), 1, all.size(0));
    const Tensor stream = all.narrow(0, 0, here).to(at::kFloat);
    list.push_back(
        {{"rms", stream.square().mean().sqrt().item<double>()}, {"max", stream.abs().max().item<double>()}});
  }
  return list;
}

}  // namespace

BatchPass::BatchPass(const TrainConfig& recipe, const LoopContext& context)
    : recipe_(recipe),
      context_(context),
      stage_(pp_stage(recipe, context.mesh)),
      shape_(micro_batch_shape(recipe, context.mesh)),
      units_(make_train_units(recipe, context.mesh, context.device)),
      model_(recipe.model, *units_, shape_, compute_dtype(recipe.precision), context.device, recipe.recompute,
             region(), stage_, token_loss(recipe), recipe.attention),
      tied_(stage_, model_.layout().tied) {
  if (!stage_.is_shared()) return;
  const int64_t micro_batches = micro_batches_per_step(recipe, context.mesh.shape().size(kDataAxes));
  pipeline_.emplace(model_, stage_, pipeline_shape(recipe.parallel, micro_batches));
}

ParallelRegion BatchPass::region() const { return parallel_region(recipe_, context_.mesh); }

BatchSums BatchPass::run(const Batch& batch, int64_t steps_done, const BatchObservers& observers) {
  // The exact mean over the valid tokens of micro-batches and ranks.
  const float weight =
      weight_of_token(batch, context_.mesh.group(kDataAxes), recipe_.guard.action, steps_done + 1);
  const Tensor losses_MR = accumulate(batch, weight, steps_done, observers);
  units_->finish();
  tied_.sum(*units_);
  return {summed(losses_MR), weight};
}

MicroBatch BatchPass::micro_batch(const MicroBatch& whole, BatchShape shape, int64_t first_sequence,
                                  int64_t num_sequences, int64_t steps_done) const {
  MicroBatch micro = cut_micro_batch(whole, shape, first_sequence, num_sequences);
  // By the position in the global batch: what is dropped does not depend on the number of ranks. The 0 was a
  // rank.
  const int64_t position = context_.mesh.group(kDataAxes).rank() * num_sequences + first_sequence;
  micro.dropout_key =
      stream_key(static_cast<uint64_t>(recipe_.seed), fmt::format("dropout {} 0 {}", steps_done, position));
  return micro;
}

Tensor BatchPass::accumulate(const Batch& batch, float weight, int64_t steps_done,
                             const BatchObservers& observers) {
  const auto& device = context_.device;
  units_->begin_step();
  const Tensor weight_1 = at::full({1}, weight, at::TensorOptions().dtype(at::kFloat).device(device));
  const auto on_device = [&](const auto& numbers) { return numbers_on(device, numbers); };
  const MicroBatch all = {.tokens_N = batch.tokens.visit(on_device),
                          .targets_N = batch.targets.visit(on_device),
                          .documents_N = numbers_on(at::kCPU, batch.documents),
                          .weights_N = numbers_on(device, batch.weights)};
  Model& model = model_.at_width(batch.seq_len);
  const BatchShape shape = {shape_.batch, batch.seq_len};
  std::vector<MicroBatch> micro_batches;
  for (int64_t b = 0; b < batch.num_sequences; b += shape.batch) {
    MicroBatch micro = micro_batch(all, shape, b, batch.num_sequences, steps_done);
    const int64_t sequences = std::min(shape.batch, batch.num_sequences - b);
    if (observers.after_forward && micro.last)
      micro.after_forward = [&observers, &model, tokens = sequences * batch.seq_len / recipe_.parallel.cp] {
        observers.after_forward(stream_statistics(model, tokens));
      };
    micro.after_losses = observers.after_losses;
    micro_batches.push_back(std::move(micro));
  }
  if (pipeline_) return pipeline_->forward_backward(model, micro_batches, weight_1);
  std::vector<Tensor> losses;
  for (const MicroBatch& micro : micro_batches) losses.push_back(model.forward_backward(micro, weight_1));
  return at::stack(losses);
}

Tensor BatchPass::summed(const Tensor& losses_MR) {
  const Mesh& mesh = context_.mesh;
  Tensor sum = at::zeros({losses_MR.size(1)}, losses_MR.options());
  if (!is_canonical()) {
    for (const Tensor& losses_R : losses_MR.unbind(0)) sum += losses_R;
    mesh.group(kLossAxes).all_reduce(sum);
    return sum;
  }
  // In the order of gradients: what ranks have of a micro-batch, micro-batches, and ranks with others.
  Tensor of_leaves_MR = losses_MR.contiguous();
  mesh.context().all_reduce(of_leaves_MR);
  TreeSum tree({of_leaves_MR.size(0)}, sum);
  for (const Tensor& losses_R : of_leaves_MR.unbind(0)) {
    sum.copy_(losses_R);
    tree.add(sum);
  }
  mesh.group(kDataAxes).all_reduce(sum);
  mesh.group(Axis::kPp).all_reduce(sum);  // zeros, but for the stage with the head
  return sum;
}

}  // namespace tycho
