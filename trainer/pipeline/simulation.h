// How long a step of a pipeline takes when each pass has a known cost. Torch-free.
#pragma once
#include <vector>

#include "trainer/pipeline/schedule.h"

namespace tycho {

/// In seconds, or in any other unit; one entry for each part of the model.
struct PipelineCosts {
  std::vector<double> forward_s, backward_s;
  double send_s = 0;  // from one stage to another; both compute meanwhile
};
/// Parts of equal cost: a forward pass takes 1, a backward pass 2, messages nothing.
PipelineCosts equal_costs(const PipelineShape& shape);

struct PipelineTimes {
  struct Span {
    double begin_s = 0, end_s = 0;
  };
  std::vector<std::vector<Span>> spans;  // one for each action of the table
  double step_s = 0;
  double idle_share = 0;  // of the stages' time in a step: 1 - passes / (stages x step)
};

/// Each pass begins as soon as its stage and its input are there. For a table without problem (validity.h);
/// throws Error for one that stops.
PipelineTimes simulate_pipeline(const PipelineShape& shape, const PipelineTable& table,
                                const PipelineCosts& costs);

}  // namespace tycho
