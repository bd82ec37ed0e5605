// Waits between the tries of a request.
#pragma once
#include <stop_token>

namespace tycho {

/// Waits. Returns false when a stop ended the wait.
bool wait_to_retry(double seconds, const std::stop_token& stop);

/// Returns a random time from half of `seconds` to all of it, so that a thousand nodes do not retry at once.
double with_jitter(double seconds);

}  // namespace tycho
