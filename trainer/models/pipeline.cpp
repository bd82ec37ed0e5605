// Runs a stage's program, and omits messages for gradients that are not needed.
#include "trainer/models/pipeline.h"

#include <ATen/ops/zeros.h>

#include <utility>
#include <vector>

#include "trainer/base/error.h"

namespace tycho {
namespace {

/// Returns the pairs of stages that send each other messages.
std::vector<std::pair<int, int>> neighbours(const std::vector<StageProgram>& programs) {
  std::vector<std::pair<int, int>> pairs;
  for (size_t stage = 0; stage < programs.size(); ++stage)
    for (const PipelineOp& op : programs[stage])
      if (op.peer > static_cast<int>(stage)) pairs.emplace_back(static_cast<int>(stage), op.peer);
  return pairs;
}

}  // namespace

Pipeline::Pipeline(const Model& model, const PipelineStage& stage, const PipelineShape& shape)
    : stage_(stage) {
  const std::vector<StageProgram> programs = pipeline_programs(shape, pipeline_table(shape));
  stage_.ranks().connect_pairs(neighbours(programs));
  program_ = programs[static_cast<size_t>(model.part().stage)];
  slots_ = stage_slots(program_, shape.num_chunks);
}

Tensor Pipeline::forward_backward(Model& model, const std::vector<MicroBatch>& micro_batches,
                                  const Tensor& weight_1) {
  Tensor losses_MR = at::zeros({static_cast<int64_t>(micro_batches.size()), model.loss().num_losses()},
                               weight_1.options().dtype(at::kDouble));
  on_their_way_.clear();  // messages of a failed step
  for (size_t i = 0; i < program_.size();) {
    const PipelineOp& op = program_[i];
    TYCHO_CHECK(static_cast<size_t>(op.micro_batch) < micro_batches.size(),
                "[pipeline] expected as many micro-batches as the schedule has, got {}",
                micro_batches.size());
    if (op.peer >= 0) {
      i += start_messages(i, model);
      continue;
    }
    const Tensor own = run(i++, model, micro_batches[static_cast<size_t>(op.micro_batch)], weight_1);
    if (own.defined()) losses_MR.select(0, op.micro_batch).copy_(own);
  }
  while (!on_their_way_.empty()) settle(on_their_way_.begin()->first);
  // Not called between its passes: an observer may talk to the other stages, which would wait for this one's
  // messages.
  if (const auto& look = micro_batches.back().after_forward) look();
  return losses_MR;
}

ActivationSlot Pipeline::place_of(size_t i) const {
  return {static_cast<size_t>(program_[i].chunk), slots_.of_ops[i].set, slots_.of_ops[i].gradient};
}

/// Runs op i, a pass. Returns the result of Model::backward; an undefined tensor for a forward pass.
Tensor Pipeline::run(size_t i, Model& model, const MicroBatch& micro, const Tensor& weight_1) {
  const ActivationSlot place = place_of(i);
  if (program_[i].kind == PipelineOp::Kind::kBackward) {
    settle(gradient(place));
    return model.backward(micro, weight_1, place);
  }
  settle(input(place)), settle(output(place));
  model.forward(micro, place);
  return {};
}

// Both sides of a message reach the same decision, because they know the lowest unit that is trained.
std::optional<Pipeline::Message> Pipeline::message_of(size_t i, Model& model) {
  const PipelineOp& op = program_[i];
  const ActivationSlot place = place_of(i);
  switch (op.kind) {
    case PipelineOp::Kind::kReceiveActivation:
      return Message{input(place), GroupedCall::recv(model.input(place), op.peer)};
    case PipelineOp::Kind::kSendActivation:
      return Message{output(place), GroupedCall::send(model.output(place), op.peer)};
    case PipelineOp::Kind::kReceiveGradient:
      if (!model.trains_until(place.chunk)) return {};
      return Message{gradient(place), GroupedCall::recv(model.gradient(place), op.peer)};
    case PipelineOp::Kind::kSendGradient:
      if (!model.trains_before(place.chunk)) return {};
      return Message{gradient(place), GroupedCall::send(model.gradient(place), op.peer)};
    case PipelineOp::Kind::kForward:
    case PipelineOp::Kind::kBackward: break;
  }
  return {};
}

// On GPUs, calls that start together finish together, and separate messages would finish in their order: a
// pass that needs the next message from there waits no longer than it would have.
size_t Pipeline::start_messages(size_t i, Model& model) {
  std::vector<Message> messages;
  if (auto message = message_of(i, model)) messages.push_back(std::move(*message));
  size_t num_ops = 1;
  if (!messages.empty() && messages[0].call.op == GroupedCall::Op::kSend && i + 1 < program_.size() &&
      program_[i + 1].peer == program_[i].peer) {
    auto back = message_of(i + 1, model);
    const bool is_free = back && back->buffer != messages[0].buffer && !on_their_way_.contains(back->buffer);
    if (is_free && back->call.op == GroupedCall::Op::kRecv) {
      messages.push_back(std::move(*back));
      num_ops = 2;
    }
  }
  std::vector<GroupedCall> calls;
  for (const Message& message : messages) {
    settle(message.buffer);
    calls.push_back(message.call);
  }
  auto pending = stage_.ranks().start_together(calls);
  for (size_t m = 0; m < messages.size(); ++m) on_their_way_[messages[m].buffer] = std::move(pending[m]);
  return num_ops;
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
