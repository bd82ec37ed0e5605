// Decides what happens to a trial whose process ended, by its exit code and final message. Torch-free.
#pragma once
#include <cstdint>
#include <string>

#include "trainer/sweep/board.h"

namespace tycho {

/// The end of a trial's process.
struct ProcessEnd {
  int exit_code = 0;        // 128 + signal for a killed process
  std::string message;      // last message of its output, which says why it ended
  std::string stopped_by;   // the rule that asked it to stop; "" for none
  bool leaving = false;     // this worker stops, or the sweep is paused
  int64_t micro_batch = 0;  // sequences per micro-batch
  bool at_last_rung = true;
  std::string not_finite;    // "eval.loss is nan" when the compared metric is not finite; "" otherwise
  int64_t steps_gained = 0;  // steps since it was claimed
};

/// Returns true when a run that ended with kNumerics and this message lacked memory, as opposed to diverging.
bool is_out_of_memory(const std::string& message);

/// Returns true when a run that ended with this code has saved its last step.
bool ends_saved(int exit_code);

/// Returns the state, note and counters for the ledger; the caller sets the result. Lack of memory: once more
/// with half the micro-batch. Storage, data, node: on another machine, twice. The recipe: failed. NaN:
/// stopped, ranked worst.
TrialEnd judge(const Trial& trial, const ProcessEnd& process_end);

/// Number of times that a trial may be lost without a step in between before it fails, because it may be the
/// cause of its worker's death.
inline constexpr int64_t kMaxLosses = 5;
/// Returns the end of a trial whose worker is gone.
TrialEnd judge_lost(const Trial& trial, int64_t steps_gained);

}  // namespace tycho
