// A listening socket that rank 0 is given, so that nobody else can take its port before it listens.
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
