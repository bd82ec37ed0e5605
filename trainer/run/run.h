// One run from request to exit.
#pragma once
#include <atomic>

#include "trainer/session/run_request.h"

namespace tycho {

/// Trains the run of `request`; collective over its ranks. `tty` draws the live view on standard output of
/// rank 0. `stop` holds the number of the signal that asked for a stop, or 0. Returns 0 when the run is done,
/// 128 + signal when it stopped and can be resumed. Throws Error.
int run_training(const RunRequest& request, bool tty, const std::atomic<int>& stop);

}  // namespace tycho
