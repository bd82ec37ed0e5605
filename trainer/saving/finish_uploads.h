// Uploads of checkpoints as the trainer's thread sees them: what it reports, and the wait at the end of a
// run.
#pragma once
#include <atomic>

#include "trainer/checkpoint/checkpoint_uploads.h"
#include "trainer/comm/communicator.h"
#include "trainer/metrics/reporter.h"

namespace tycho {

/// Longest wait, at the end of a run, without anything being stored: of a run that is done, and of one that a
/// signal stopped.
inline constexpr double kUploadPatience_s = 600, kStoppedUploadPatience_s = 60;

/// Reports what the uploads of this rank did since the last call. Throws what ends the run.
void report_uploads(CheckpointUploads& uploads, Reporter& reporter);

/// Waits until all ranks have uploaded everything. Ends earlier, with a warning that says what is left, when
/// a signal reaches any rank, and when nothing was stored for the patience above. `ended_by` is the signal
/// that ended training, or 0; Ctrl-C leaves at once. Collective.
void finish_uploads(CheckpointUploads& uploads, Communicator& world, Reporter& reporter,
                    const std::atomic<int>& stop, int ended_by);

}  // namespace tycho
