// A sweep as a Slurm array: identical tasks, each of which is a worker.
#pragma once
#include <string>

#include "trainer/sweep/config.h"
#include "trainer/sweep/folder.h"

namespace tycho {

/// Returns the batch script, which `--print` shows and sbatch gets. `program` is the path of this program's
/// file.
std::string slurm_script(const SweepFolder& folder, const SlurmArrayLaunch& launch,
                         const std::string& program);

/// Writes the script into the sweep's folder, submits it with sbatch and returns the job's number. Throws
/// Error (kTopology) with sbatch's message.
std::string submit(const SweepFolder& folder, const std::string& script);

}  // namespace tycho
