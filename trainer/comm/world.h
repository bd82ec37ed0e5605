// The communicators of a run, for CPUs and GPUs.
#pragma once
#include <atomic>
#include <functional>
#include <memory>

#include "trainer/comm/communicator.h"
#include "trainer/comm/sockets/rank_sums.h"
#include "trainer/rendezvous/meet/meet_options.h"
#include "trainer/rendezvous/rank_group.h"
#include "trainer/rendezvous/rank_info.h"

namespace tycho {

/// Opens the world of all ranks of the run, for tensors in host memory: a world of one, or ranks that have
/// met. Collective; throws as rendezvous. `order`: of sums in host memory.
std::unique_ptr<Communicator> open_world(const RankInfo& place, const MeetOptions& options = {},
                                         SumOrder order = SumOrder::kRanks);

/// Type of open_world, for tests that record the ranks' calls.
using WorldMaker =
    std::function<std::unique_ptr<Communicator>(const RankInfo&, const MeetOptions&, SumOrder)>;

/// Opens a group of the same ranks for texts, independent of their run. Collective. `patience_s`: seconds
/// that a rank waits in gather for the others, who may wait for a user. `stop`: see MeetOptions::stop.
std::unique_ptr<RankGroup> open_group(const RankInfo& place, double patience_s, const std::atomic<int>& stop);

/// Extends a world to tensors on `device`, with NCCL on GPUs. `order`: of sums on GPUs. Collective. Throws
/// Error (kTopology) when some ranks have a GPU and others none.
std::unique_ptr<Communicator> with_device(std::unique_ptr<Communicator> world, const at::Device& device,
                                          SumOrder order = SumOrder::kRanks);

}  // namespace tycho
