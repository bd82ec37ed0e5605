// Number of CPU cores that a rank may compute on. Torch-free.
#pragma once
#include <cstdint>

#include "trainer/rendezvous/rank_info.h"

namespace tycho {

/// Number of cores that this process may run on.
int usable_cores();

/// Number of cores of one rank, at least 1: its own when a scheduler bound it to some, else an equal share of
/// the cores that the ranks of its machine have together. Never more than its share of the CPUs that Slurm
/// allocated on this node (SLURM_CPUS_ON_NODE): not every cluster binds processes to them.
int cores_of_rank(const RankInfo& place, const Environment& variable = process_environment());

/// Number of CPU threads of one rank: `wanted`, or cores_of_rank() if `wanted` is 0.
int threads_of_rank(int64_t wanted, const RankInfo& place);

}  // namespace tycho
