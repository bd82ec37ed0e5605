// Decides what happens to a trial whose process ended, by its exit code and final message. Torch-free.
#pragma once
#include <cstdint>
#include <string>

#include "trainer/sweep/board.h"

namespace tycho {

/// How the process of a trial ended.
struct Departure {
  int exit_code = 0;        // 128 + signal for one that was killed
  std::string message;      // the last one of its output: why it ended
  std::string stopped_by;   // the rule that asked it to stop; "" for none
  bool leaving = false;     // this worker stops, or the sweep is paused
  int64_t micro_batch = 0;  // sequences that it computed with at once
  bool at_last_rung = true;
  std::string not_finite;    // "eval.loss is nan": what trials are compared by; "" for a number, or none
  int64_t steps_gained = 0;  // since it was taken
};

/// Whether a run that ended with kNumerics and this message found too little memory, and did not diverge.
bool is_out_of_memory(const std::string& message);

/// Whether a run that ended with this code has saved its last step.
bool ends_saved(int exit_code);

/// The state, note and counters that the ledger records; the result is the caller's. Memory: once more with
/// half the micro-batch. Storage, data, node: elsewhere, twice. The recipe: failed. NaN: stopped, as bad as
/// can be.
TrialEnd judge(const Trial& trial, const Departure& departure);

/// How often a trial may be lost without a step in between before it is failed: it may take its worker with
/// it.
inline constexpr int64_t kMaxLosses = 5;
/// The end of a trial whose worker is gone.
TrialEnd judge_lost(const Trial& trial, int64_t steps_gained);

}  // namespace tycho
