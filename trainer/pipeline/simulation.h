// Computes the time of a pipeline step when each pass has a known cost. Torch-free.
#pragma once
#include <vector>

#include "trainer/pipeline/schedule.h"

namespace tycho {

/// Costs in seconds, or in any other unit; one entry for each part of the model.
struct PipelineCosts {
  std::vector<double> forward_s, backward_s;
  double send_s = 0;  // between two stages, which can compute meanwhile
};
/// Returns parts of equal cost: a forward pass takes 1, a backward pass 2, messages 0.
PipelineCosts equal_costs(const PipelineShape& shape);

struct PipelineTimes {
  struct Span {
    double begin_s = 0, end_s = 0;
  };
  std::vector<std::vector<Span>> spans;  // one for each action of the table
  double step_s = 0;
  double idle_share = 0;  // of the stages' time in a step: 1 - passes / (stages x step)
};

/// Starts each pass as soon as its stage is free and its input has arrived. Requires a table that does
/// every pass once; throws Error for one that deadlocks.
PipelineTimes simulate_pipeline(const PipelineShape& shape, const PipelineTable& table,
                                const PipelineCosts& costs);

}  // namespace tycho
