// Transfers to and from the hub that run at the same time.
#pragma once
#include <cstddef>
#include <functional>

namespace tycho {

/// Runs `act` for the numbers below `count`, up to `most_threads` at a time, and returns when all have ended.
/// After the first exception no other one begins, and it is thrown.
void in_parallel(size_t count, size_t most_threads, const std::function<void(size_t)>& act);

}  // namespace tycho
