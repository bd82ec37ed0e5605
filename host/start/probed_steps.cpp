// Measures a few steps of a run.
#include "host/start/probed_steps.h"

#include "trainer/base/error.h"

namespace tycho {

Probe probe(TrainingSession& session, int64_t num_steps) {
  const RunInfo& run = session.facts().run;
  const std::vector<StepMetrics> steps = session.step(num_steps);
  TYCHO_CHECK(!steps.empty(), "[probe] the run did no step: is max_duration shorter than one step?");
  Probe result;
  result.num_steps = static_cast<int64_t>(steps.size());
  result.first_step_s = steps.front().step_s;
  const size_t begin = steps.size() > 1 ? 1 : 0;
  const auto count = static_cast<double>(steps.size() - begin);
  for (size_t i = begin; i < steps.size(); ++i) {
    result.step_s += steps[i].step_s / count;
    result.data_wait_s += steps[i].data_wait_s / count;
  }
  const int64_t tokens = steps.back().tokens - (begin > 0 ? steps.front().tokens : 0);
  result.speed = speed_of(tokens, result.step_s * count, run);
  const MemoryUse memory = session.memory();
  result.memory_bytes = memory.peak - memory.before;
  result.memory_before = memory.before;
  result.run_s = result.step_s * static_cast<double>(run.total_steps);
  return result;
}

}  // namespace tycho
