// Work on numbered items by several threads.
#pragma once
#include <cstddef>
#include <functional>
#include <stop_token>

namespace tycho {

/// Calls `work` for the numbers below `count`, in order, from up to `num_threads` threads, of which the
/// calling thread is one. Returns when all calls have ended. After the first exception no other call begins;
/// throws the exception of the lowest number that failed, which does not depend on the threads' timing.
void in_parallel(size_t count, size_t num_threads, const std::function<void(size_t)>& work);

/// Calls `work` as in_parallel() does, with a token that asks the calls to stop when `stop` does or one of
/// them has failed. Throws the exception of the call that failed first.
void in_parallel(size_t count, size_t num_threads, const std::stop_token& stop,
                 const std::function<void(size_t, const std::stop_token&)>& work);

}  // namespace tycho
