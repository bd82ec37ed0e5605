// What a stage of a pipeline does, in order: its passes, and its messages with other stages. Torch-free.
#pragma once
#include <vector>

#include "trainer/pipeline/schedule.h"

namespace tycho {

/// Activations go to the stage of the next part of the model, gradients to that of the part before.
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
  int chunk = 0;  // of this stage: whose input is received, whose result is sent
  int micro_batch = 0;
  int peer = -1;  // the other stage of a message
  friend bool operator==(const PipelineOp&, const PipelineOp&) = default;
};
using StageProgram = std::vector<PipelineOp>;

/// One for each stage, of a table without problem (validity.h). The passes are those of the table. The first
/// part receives no activation and the last one no gradient; where the next part is on the same stage nothing
/// is sent. What a pass computes is sent before the stage's next pass. What is received waits in a buffer
/// until its pass.
///
/// All programs follow one order of all passes and messages, in which a message is one event for both of its
/// stages. So sends and receives may block until the other half is there, one at a time: nothing waits for
/// ever, and two stages agree on the order of the messages between them.
std::vector<StageProgram> pipeline_programs(const PipelineShape& shape, const PipelineTable& table);

/// The most that a stage has at once.
struct PipelineHolds {
  int activations = 0;           // forward passes whose backward pass is not done
  int received_activations = 0;  // that wait for their forward pass
  int received_gradients = 0;    // that wait for their backward pass
};
PipelineHolds pipeline_holds(const StageProgram& program);

/// For each op of a program, the slot of its activations, from 0 to the most that the stage has at once less
/// one: a backward pass frees what its forward pass took. -1 for messages.
std::vector<int> activation_slots(const StageProgram& program);

}  // namespace tycho
