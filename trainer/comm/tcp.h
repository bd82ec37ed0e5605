// A world of processes that exchange data over authenticated connections (trainer/rendezvous).
#pragma once
#include <memory>

#include "trainer/comm/communicator.h"
#include "trainer/comm/sockets/rank_sums.h"
#include "trainer/rendezvous/peers.h"
#include "trainer/rendezvous/rank_group.h"

namespace tycho {

/// Seconds that a collective waits for a byte of another rank: the slowest may evaluate or save meanwhile.
inline constexpr double kCollectiveTimeoutS = 1800;

/// Makes the world of all ranks of `peers`, for tensors in host memory; collective. Used by one thread; calls
/// in the background have their own thread. `order`: of the sums of all its groups.
std::unique_ptr<Communicator> make_tcp_world(std::shared_ptr<Peers> peers,
                                             double timeout_s = kCollectiveTimeoutS,
                                             SumOrder order = SumOrder::kRanks);

/// Makes a group of these ranks for texts; collective. `patience_s`: seconds that a rank waits in gather for
/// the others, who may wait for a user.
std::unique_ptr<RankGroup> make_tcp_group(std::shared_ptr<Peers> peers, double patience_s);

}  // namespace tycho
