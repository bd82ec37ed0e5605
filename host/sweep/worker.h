// Runs a sweep's trials: takes tasks, runs their processes and records the results. There is no controller:
// any number of workers on any machines work in parallel.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "bindings/define/sweep.h"
#include "trainer/session/engine.h"
#include "trainer/sweep/folder.h"

namespace tycho {

struct WorkerOptions {
  int64_t slots = 1;             // number of trials at once
  int64_t gpus_per_trial = 0;    // 0: trials see all GPUs
  bool use_srun = false;         // a trial is a step of the Slurm job
  bool leave_when_idle = false;  // do not wait for other workers' trials, which may have to be continued
};

/// Works until nothing is left to do, or until `stop` asks to end: then all trials save and are put back.
/// `program` holds the sweep's functions; nullptr when it has none. Returns 0 when the sweep has ended or was
/// paused, 128 + signal when it was stopped. Throws Error.
int work(SweepFolder& folder, const SweepProgram* program, const WorkerOptions& options,
         const StopFlag& stop);

}  // namespace tycho
