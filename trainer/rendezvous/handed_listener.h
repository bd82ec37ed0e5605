// A listening socket that the launcher passes to rank 0, so that no other process can take its port.
// Torch-free.
#pragma once
#include "trainer/rendezvous/rank_info.h"
#include "trainer/rendezvous/socket.h"

namespace tycho {

/// Returns a descriptor for RankInfo::listener, which stays open across exec. Takes ownership from the
/// caller.
int hand_over(Socket listener);

/// Returns the listener of `place`, non-blocking and owned by the caller. Returns a closed socket when rank 0
/// was given none, when it has been taken before, or when it does not listen at place.port: rank 0 then opens
/// one.
Socket take_listener(const RankInfo& place);

}  // namespace tycho
