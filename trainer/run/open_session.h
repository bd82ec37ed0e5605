// Opens a run: folder, lock, reporters, memory, weights or checkpoint.
#pragma once
#include <atomic>
#include <memory>

#include "trainer/metrics/reporter.h"
#include "trainer/parallel/world.h"
#include "trainer/run_folder/run_folder.h"
#include "trainer/session/session.h"

namespace tycho {

/// Opens what `request` asks for and is ready for its next step. `display` gets what the run reports, beside
/// the files of its folder; none for nothing. `stop` holds the number of the signal that asked for a stop, or
/// 0, and outlives the session. Throws Error.
std::unique_ptr<TrainingSession> open_session(const RunRequest& request, std::unique_ptr<Reporter> display,
                                              const std::atomic<int>& stop);

/// The same with ranks that meet as `make_world` says.
std::unique_ptr<TrainingSession> open_session(const RunRequest& request, std::unique_ptr<Reporter> display,
                                              const std::atomic<int>& stop, const WorldMaker& make_world);

}  // namespace tycho
