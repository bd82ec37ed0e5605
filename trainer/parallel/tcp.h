// Ranks that are processes, over authenticated connections of their own: trainer/rendezvous.
#pragma once
#include <memory>

#include "trainer/parallel/communicator.h"
#include "trainer/parallel/rank_sums.h"
#include "trainer/rendezvous/peers.h"
#include "trainer/rendezvous/rank_group.h"

namespace tycho {

/// How long a collective waits for a byte of another rank: the slowest may evaluate or save meanwhile.
inline constexpr double kCollectiveTimeoutS = 1800;

/// All ranks of `peers`; collective. For tensors in host memory. Used by one thread; what runs in the
/// background has a thread of its own. `order`: of the sums of all its groups.
std::unique_ptr<Communicator> make_tcp_world(std::shared_ptr<Peers> peers,
                                             double timeout_s = kCollectiveTimeoutS,
                                             SumOrder order = SumOrder::kRanks);

/// The same ranks for texts. `patience_s`: how long a rank waits in gather for the others, who may wait for a
/// person.
std::unique_ptr<RankGroup> make_tcp_group(std::shared_ptr<Peers> peers, double patience_s);

}  // namespace tycho
