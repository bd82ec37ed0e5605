// What parallel.reduce = "canonical" needs of the machines that a run computes on.
#pragma once
#include "trainer/comm/communicator.h"
#include "trainer/comm/sockets/rank_sums.h"
#include "trainer/kernels/tensor.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Returns the order of sums over this run's ranks.
SumOrder sum_order(const TrainConfig& config);

/// Throws Error (kTopology) when the bits of a canonical run would depend on the number of its ranks on this
/// machine: where LibTorch multiplies matrices on as many threads as a rank happens to have. Call after
/// set_threads.
void require_given_threads(const TrainConfig& config, const at::Device& device);

/// Throws Error (kTopology) when ranks of a canonical run would compute different bits because of other GPUs,
/// instruction sets or versions of LibTorch (compute_route). Collective for such a run. Call after
/// set_threads.
void require_one_route(const TrainConfig& config, const at::Device& device, Communicator& world);

}  // namespace tycho
