// The communicators of a run, for CPUs and GPUs.
#pragma once
#include <atomic>
#include <functional>
#include <memory>

#include "trainer/parallel/communicator.h"
#include "trainer/parallel/rank_sums.h"
#include "trainer/rendezvous/meet/meet_options.h"
#include "trainer/rendezvous/rank_group.h"
#include "trainer/rendezvous/rank_place.h"

namespace tycho {

/// All ranks of the run, for what is in host memory: a world of one, or ranks that have met. Collective;
/// throws as meet_peers. `order`: of sums of what is in host memory.
std::unique_ptr<Communicator> open_world(const RankPlace& place, const MeetOptions& options = {},
                                         SumOrder order = SumOrder::kRanks);

/// open_world, or a test's own that listens to what the ranks call.
using WorldMaker =
    std::function<std::unique_ptr<Communicator>(const RankPlace&, const MeetOptions&, SumOrder)>;

/// The same meeting for texts, beside any run of theirs. `patience_s`: how long a rank waits in gather for
/// the others, who may wait for a person. `stop`: as of MeetOptions.
std::unique_ptr<RankGroup> open_group(const RankPlace& place, double patience_s,
                                      const std::atomic<int>& stop);

/// The same ranks for tensors on `device`, too: NCCL on GPUs. `order`: of sums of what is on GPUs.
/// Collective. Throws Error (kTopology) when some have a GPU and others none.
std::unique_ptr<Communicator> with_device(std::unique_ptr<Communicator> world, const at::Device& device,
                                          SumOrder order = SumOrder::kRanks);

}  // namespace tycho
