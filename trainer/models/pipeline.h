// A training step of a model whose stages are on several ranks: micro-batches pass through in the order of a
// schedule.
#pragma once
#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/stages.h"
#include "trainer/models/model.h"
#include "trainer/models/pipeline_stage.h"
#include "trainer/pipeline/program.h"
#include "trainer/pipeline/schedule.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {

/// Exchanges messages in the background: a pass waits only for those that it needs, or whose memory it writes
/// to. They start in the order of the stage's program, so that there is no deadlock on GPUs either
/// (pipeline/program.h); a message to a stage and the next one from it start together. Owned by the thread of
/// the model.
class Pipeline {
 public:
  /// `model` computes the part of `stage`. Collective on the ranks along pp.
  Pipeline(const Model& model, const PipelineStage& stage, const PipelineShape& shape);

  /// Does the work of Model::forward_backward for all micro-batches of a step, which are equal on all ranks
  /// along pp. `model`: that of the constructor, at the width of these micro-batches. Returns the losses
  /// of each, fp64 [micro-batches, losses of a token], on the stage with the head; zeros on the others.
  /// Collective on the ranks along pp.
  Tensor forward_backward(Model& model, const std::vector<MicroBatch>& micro_batches, const Tensor& weight_1);

 private:
  /// Memory that messages are read from or written to: rows of the stream of a chunk's set, gradients of the
  /// stage.
  enum class Memory { kInput, kOutput, kGradient };
  struct Buffer {
    Memory memory;
    size_t chunk;
    int64_t number;
    auto operator<=>(const Buffer&) const = default;
  };
  static Buffer input(const ActivationSlot& place) { return {Memory::kInput, place.chunk, place.set}; }
  static Buffer output(const ActivationSlot& place) { return {Memory::kOutput, place.chunk, place.set}; }
  static Buffer gradient(const ActivationSlot& place) { return {Memory::kGradient, 0, place.gradient}; }

  struct Message {
    Buffer buffer;
    GroupedCall call;
  };

  Tensor run(size_t i, Model& model, const MicroBatch& micro, const Tensor& weight_1);
  ActivationSlot place_of(size_t i) const;
  /// Returns the message of op i; nothing for a pass, or when the gradient is not needed.
  std::optional<Message> message_of(size_t i, Model& model);
  /// Starts the message of op i, and that of the next op where both start together. Returns the number of
  /// ops.
  size_t start_messages(size_t i, Model& model);
  /// Waits until no message uses the buffer.
  void settle(Buffer buffer);

  PipelineStage stage_;
  StageProgram program_;
  StageSlots slots_;
  std::map<Buffer, std::unique_ptr<Pending>> on_their_way_;
};

/// Sums the gradients of the two copies of a tied embedding, on ranks of the first stage and of the last one,
/// so that the copies stay equal.
class TiedCopies {
 public:
  /// Collective on the ranks along pp. `tied`: true if there are copies.
  TiedCopies(const PipelineStage& stage, bool tied);
  /// Call after UnitStore::finish, before gradients are read. Collective on the ranks along pp.
  void sum(UnitStore& units);

 private:
  std::unique_ptr<Communicator> both_;  // nullptr on stages without a copy
};

}  // namespace tycho
