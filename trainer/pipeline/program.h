// The operations of a pipeline stage, in order: its passes, and its messages with other stages. Torch-free.
#pragma once
#include <vector>

#include "trainer/pipeline/schedule.h"

namespace tycho {

/// An operation of a stage. Activations go to the stage of the next part of the model, gradients to that of
/// the previous part.
struct PipelineOp {
  enum class Kind {
    kReceiveActivation,
    kForward,
    kSendActivation,
    kReceiveGradient,
    kBackward,
    kSendGradient
  };
  Kind kind = Kind::kForward;
  int chunk = 0;  // of this stage: receives the input, or sends the result
  int micro_batch = 0;
  int peer = -1;  // the other stage of a message
  friend bool operator==(const PipelineOp&, const PipelineOp&) = default;
};
using StageProgram = std::vector<PipelineOp>;

/// Returns one program for each stage, for a table that does every pass once, each after its input. The
/// first part receives no activation and the last one no gradient; nothing is sent when the next part is on
/// the same stage. The result of a pass is sent before the stage's next pass. Received tensors wait in a
/// buffer for their pass.
///
/// All programs follow one order of all passes and messages, in which a message is one event for both of its
/// stages. So sends and receives may block until the other half is there, one at a time: there is no
/// deadlock, and two stages agree on the order of the messages between them.
std::vector<StageProgram> pipeline_programs(const PipelineShape& shape, const PipelineTable& table);

/// The maximum numbers that a stage holds at once.
struct PipelineHolds {
  int activations = 0;           // forward passes whose backward pass is not done
  int received_activations = 0;  // waiting for their forward pass
  int received_gradients = 0;    // waiting for their backward pass
};
PipelineHolds pipeline_holds(const StageProgram& program);

}  // namespace tycho
