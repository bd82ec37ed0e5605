// The speed and memory of a run, measured over a few of its steps. Torch-free.
#pragma once
#include <cstdint>

#include "trainer/metrics/throughput.h"
#include "trainer/session/session.h"

namespace tycho {

struct Probe {
  int64_t num_steps = 0;      // number of steps measured
  double first_step_s = 0;    // includes everything that is set up lazily
  double step_s = 0;          // mean of the later steps; that of the first step when it is the only one
  double data_wait_s = 0;     // of step_s
  Speed speed;                // at step_s, all ranks together
  int64_t memory_bytes = 0;   // peak memory of the run on this rank's device
  int64_t memory_before = 0;  // memory in use on that device before the run
  double run_s = 0;           // all steps of the run at step_s
};

/// Trains up to `num_steps` steps of a run that has none behind it, fewer when the run is shorter. Collective
/// over the ranks of the session.
Probe probe(TrainingSession& session, int64_t num_steps);

}  // namespace tycho
