// Detects restarts without progress: a job that dies again and again before it saves must not restart
// forever. Torch-free.
#pragma once
#include <cstdint>
#include <string>

namespace tycho {

/// As many starts from one step that died, and the next start is refused.
inline constexpr int64_t kMostFruitlessStarts = 3;

/// How many of the newest starts of a run, one after the other, began at `first_step` and died: killed
/// without a word, or failed with a code that says "start me again". A start that a person stopped, or that
/// failed for good, ends the count: somebody has looked at it. 0 for a folder without a run.
int64_t fruitless_starts(const std::string& run_dir, int64_t first_step);

/// Throws Error (kNoProgress) when the next start from `first_step` would be one too many.
void require_progress(const std::string& run_dir, int64_t first_step);

}  // namespace tycho
