// The steady speed of a run's steps, and where their time goes. Torch-free.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/metrics/throughput.h"
#include "trainer/session/session.h"

namespace tycho {

struct StepBench {
  int64_t num_steps = 0;  // number of steps timed
  double fastest_s = 0, median_s = 0, slowest_s = 0;
  double data_wait_s = 0;  // mean of a step
  /// Means over the steps of StepMetrics::comm_wait_s and comm_s. nullopt on one rank and on GPUs.
  std::optional<double> comm_wait_s, comm_s;
  Speed speed;  // of the median step, all ranks together
  int64_t tokens_per_step = 0, memory_bytes = 0;
};

/// Trains `warmup` steps, then times `num_steps`, fewer when the run is shorter. Collective over the ranks of
/// the session. Throws Error (kFailure) when no step is left to time.
StepBench bench_steps(TrainingSession& session, int64_t warmup, int64_t num_steps);

/// A kind of work and its share of the profiled time.
struct StepPart {
  std::string name;  // "forward", "backward", ...
  double seconds = 0, share = 0;
};

/// Returns the time of rank 0's training thread by kind of work, longest first, from the ranges of a trace
/// that a profile wrote (docs/profiling.md). "other" is the time outside all ranges. Empty for a trace
/// without steps. Throws Error (kUnusable) for text that is no trace.
std::vector<StepPart> parts_of_trace(std::string_view trace);

}  // namespace tycho
