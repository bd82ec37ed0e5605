// A listening socket that the launcher hands to rank 0, so that no other process can take its port.
// Torch-free.
#pragma once
#include "trainer/rendezvous/rank_place.h"
#include "trainer/rendezvous/socket.h"

namespace tycho {

/// For RankPlace::listener: the descriptor, which this function's caller no longer owns.
int hand_over(Socket listener);

/// The listener of `place`, non-blocking; from now on the caller owns it. One that is not open when rank 0
/// was given none, when it has been taken before, or when it does not listen at place.port: rank 0 opens one
/// then.
Socket take_listener(const RankPlace& place);

}  // namespace tycho
