// Detects restarts without progress: a job that dies again and again before it saves must not restart
// forever. Torch-free.
#pragma once
#include <cstdint>
#include <string>

namespace tycho {

/// Number of failed starts from one step after which the next start is refused.
inline constexpr int64_t kMostFruitlessStarts = 3;

/// Counts the newest consecutive starts of a run that began at `first_step` and died: killed without a
/// record, or failed with a code that says "start me again". A start that a person stopped, or that failed
/// for good, ends the count, because somebody has looked at it. Returns 0 for a folder without a run.
int64_t fruitless_starts(const std::string& run_dir, int64_t first_step);

/// Throws Error (kNoProgress) when the next start from `first_step` would exceed the limit.
void require_progress(const std::string& run_dir, int64_t first_step);

}  // namespace tycho
