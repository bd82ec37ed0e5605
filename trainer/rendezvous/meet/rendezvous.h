// Brings the ranks of a run together. Torch-free.
#pragma once
#include <memory>

#include "trainer/rendezvous/meet/meet_options.h"
#include "trainer/rendezvous/peers.h"
#include "trainer/rendezvous/rank_info.h"

namespace tycho {

/// Returns when all ranks of `place` have come; collective. A rank without a token waits for the one that
/// rank 0 writes (job_token.h). Afterwards a thread monitors the ranks, and another one admits connections of
/// this world. Throws Error (kTopology) that names the ranks that did not come in time, or says why this rank
/// is turned away; with 128 + signal when it must stop; and as Peers::why_broken when a rank is lost
/// meanwhile.
std::unique_ptr<Peers> rendezvous(const RankInfo& place, const MeetOptions& options = {});

}  // namespace tycho
