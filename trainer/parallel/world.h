// The communicators of a run, for CPUs and GPUs.
#pragma once
#include <memory>

#include "trainer/parallel/communicator.h"
#include "trainer/rendezvous/rank_place.h"

namespace tycho {

/// All ranks of the run, for what is in host memory: a world of one, or Gloo's. Collective; throws as
/// make_gloo_world.
std::unique_ptr<Communicator> open_world(const RankPlace& place);

/// The same ranks for tensors on `device`, too: NCCL on GPUs. Collective. Throws Error (kTopology) when some
/// have a GPU and others none.
std::unique_ptr<Communicator> with_device(std::unique_ptr<Communicator> world, const at::Device& device);

}  // namespace tycho
