// Walks a stage's program, and leaves out messages for gradients that nobody wants.
#include "trainer/models/pipeline.h"

#include <ATen/ops/zeros.h>

#include <utility>

#include "trainer/base/error.h"

namespace tycho {

Pipeline::Pipeline(Model& model, const PipelineStage& stage, const PipelineShape& shape)
    : model_(model),
      stage_(stage),
      program_(pipeline_programs(shape, pipeline_table(shape))[static_cast<size_t>(model.part().stage)]),
      slots_(stage_slots(program_, shape.num_chunks)) {}

Tensor Pipeline::forward_backward(const std::vector<MicroBatch>& micro_batches, const Tensor& weight_1) {
  Tensor loss = at::zeros({1}, weight_1.options().dtype(at::kDouble));
  on_their_way_.clear();  // of a step that failed
  for (size_t i = 0; i < program_.size(); ++i) {
    const PipelineOp& op = program_[i];
    const PassPlace place = {static_cast<size_t>(op.chunk), slots_.of_ops[i].set, slots_.of_ops[i].gradient};
    TYCHO_CHECK(static_cast<size_t>(op.micro_batch) < micro_batches.size(),
                "[pipeline] wanted as many micro-batches as the schedule has, given {}",
                micro_batches.size());
    const Tensor own = run(op, place, micro_batches[static_cast<size_t>(op.micro_batch)], weight_1);
    if (own.defined()) loss += own;
  }
  while (!on_their_way_.empty()) settle(on_their_way_.begin()->first);
  return loss;
}

/// What a backward pass of the head returns.
Tensor Pipeline::run(const PipelineOp& op, const PassPlace& place, const MicroBatch& micro,
                     const Tensor& weight_1) {
  switch (op.kind) {
    case PipelineOp::Kind::kForward:
      settle(input(place)), settle(output(place));
      model_.forward(micro, place);
      if (micro.after_forward && place.chunk + 1 == model_.part().chunks.size()) micro.after_forward();
      return {};
    case PipelineOp::Kind::kBackward: settle(gradient(place)); return model_.backward(micro, weight_1, place);
    default: start_message(op, place); return {};
  }
}

// Both sides of a message decide alike: they know the lowest unit that is trained.
void Pipeline::start_message(const PipelineOp& op, const PassPlace& place) {
  Communicator& ranks = stage_.ranks();
  switch (op.kind) {
    case PipelineOp::Kind::kReceiveActivation: {
      Tensor input_SD = model_.input(place);
      on_their_way_[input(place)] = ranks.start_recv(input_SD, op.peer);
      return;
    }
    case PipelineOp::Kind::kSendActivation:
      on_their_way_[output(place)] = ranks.start_send(model_.output(place), op.peer);
      return;
    case PipelineOp::Kind::kReceiveGradient:
      if (!model_.trains_until(place.chunk)) return;
      settle(gradient(place));
      on_their_way_[gradient(place)] = ranks.start_recv(model_.gradient(place), op.peer);
      return;
    case PipelineOp::Kind::kSendGradient:
      if (model_.trains_before(place.chunk))
        on_their_way_[gradient(place)] = ranks.start_send(model_.gradient(place), op.peer);
      return;
    case PipelineOp::Kind::kForward:
    case PipelineOp::Kind::kBackward: return;
  }
}

void Pipeline::settle(Buffer buffer) {
  const auto found = on_their_way_.find(buffer);
  if (found == on_their_way_.end()) return;
  const std::unique_ptr<Pending> message = std::move(found->second);
  on_their_way_.erase(found);
  message->wait();
}

TiedCopies::TiedCopies(const PipelineStage& stage, bool tied) {
  if (!tied || !stage.is_shared()) return;
  Communicator& ranks = stage.ranks();
  const bool has_copy = ranks.rank() == 0 || ranks.rank() + 1 == ranks.size();
  std::unique_ptr<Communicator> group = ranks.split(has_copy ? 0 : 1, ranks.rank());
  if (has_copy) both_ = std::move(group);
}

void TiedCopies::sum(UnitStore& units) {
  if (!both_) return;
  if (Tensor grads = units.owned().front().grads; grads.defined() && grads.numel() > 0)
    both_->all_reduce(grads);
}

}  // namespace tycho
