// How a step computes its batch: as micro-batches, on one stage or through several.
#include <ATen/core/IListRef.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "trainer/base/random/philox.h"
#include "trainer/kernels/host_copies.h"
#include "trainer/loop/micro_batches.h"
#include "trainer/loop/trainer.h"
#include "trainer/rendezvous/progress.h"
#include "trainer/units/tree_sum.h"

namespace tycho {

float Trainer::token_weight(const Batch& batch) {
  Tensor tokens_1 =
      at::full({1}, static_cast<double>(batch.valid_tokens), at::TensorOptions().dtype(at::kDouble));
  data_ranks_.all_reduce(tokens_1);
  return static_cast<float>(1.0 / tokens_1.item<double>());
}

MicroBatch Trainer::micro_batch(const MicroBatch& whole, BatchShape shape, int64_t first_sequence,
                                int64_t num_sequences) {
  MicroBatch micro = cut_micro_batch(whole, shape, first_sequence, num_sequences);
  // By the place in the global batch: what is dropped does not depend on the number of ranks. The 0 was a
  // rank.
  const int64_t place = data_ranks_.rank() * num_sequences + first_sequence;
  micro.dropout_key =
      stream_key(static_cast<uint64_t>(config_.seed), fmt::format("dropout {} 0 {}", state_.step, place));
  return micro;
}

Tensor Trainer::accumulate(const Batch& batch, float weight) {
  const auto& device = context_.device;
  units_->begin_step();
  const Tensor weight_1 = at::full({1}, weight, at::TensorOptions().dtype(at::kFloat).device(device));
  const auto on_device = [&](const auto& numbers) { return numbers_on(device, numbers); };
  const MicroBatch all = {.tokens_N = batch.tokens.visit(on_device),
                          .targets_N = batch.targets.visit(on_device),
                          .documents_N = numbers_on(at::kCPU, batch.documents)};
  const bool look = hooks_.wants(Event::kAfterForward, state_.step + 1);
  loss_by_position_.reset();  // of a step that failed
  if (due(config_.log.loss_by_position, /*ahead=*/1)) loss_by_position_.emplace(config_.seq_len, device);
  Model& model = model_.at_width(batch.seq_len);
  const BatchShape shape = {micro_shape_.batch, batch.seq_len};
  std::vector<MicroBatch> micro_batches;
  for (int64_t b = 0; b < batch.num_sequences; b += shape.batch) {
    MicroBatch micro = micro_batch(all, shape, b, batch.num_sequences);
    const int64_t sequences = std::min(shape.batch, batch.num_sequences - b);
    if (look && micro.last)
      micro.after_forward = [this, &model, tokens = sequences * batch.seq_len / config_.parallel.cp] {
        announce(Event::kAfterForward, {{"activations", stream_statistics(model, tokens)}});
      };
    if (loss_by_position_)
      micro.after_losses = [this](const TokenLosses& losses) { loss_by_position_->add(losses); };
    micro_batches.push_back(std::move(micro));
  }
  if (is_canonical())
    for (MicroBatch& micro : micro_batches) micro.first = true;  // the units add what each leaves
  if (pipeline_) return pipeline_->forward_backward(model, micro_batches, weight_1);
  std::vector<Tensor> losses;
  for (const MicroBatch& micro : micro_batches)
    losses.push_back(model.forward_backward(micro, weight_1).view({1}).clone());
  return at::cat(losses);
}

Tensor Trainer::summed(const Tensor& losses_M) {
  Tensor sum = at::zeros({1}, losses_M.options());
  if (!is_canonical()) {
    for (int64_t i = 0; i < losses_M.numel(); ++i) sum += losses_M[i];
    loss_ranks_.all_reduce(sum);
    return sum;
  }
  // In the order of gradients: what ranks have of a micro-batch, micro-batches, and ranks with others.
  const Mesh& mesh = context_.mesh;
  Tensor of_leaves_M = losses_M.contiguous();
  mesh.context().all_reduce(of_leaves_M);
  TreeSum tree({of_leaves_M.numel()}, sum);
  for (int64_t i = 0; i < of_leaves_M.numel(); ++i) {
    sum.copy_(of_leaves_M.narrow(0, i, 1));
    tree.add(sum);
  }
  data_ranks_.all_reduce(sum);
  mesh.group(Axis::kPp).all_reduce(sum);  // zeros, but for the stage with the head
  return sum;
}

void Trainer::record_loss_by_position() {
  if (!loss_by_position_) return;
  loss_by_position_->sum_over(loss_ranks_);
  if (context_.world.rank() == 0) context_.reporter.table(state_.step, loss_by_position_->table());
  loss_by_position_.reset();
}

// Of the stream before each block and after the last one, over the first tokens of the micro-batch: those of
// them that this rank has, and nothing of what another stage computes.
Json Trainer::stream_statistics(Model& model, int64_t num_tokens) {
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

}  // namespace tycho
