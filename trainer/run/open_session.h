// Opens a run: folder, lock, reporters, memory, weights or checkpoint.
#pragma once
#include <atomic>
#include <memory>

#include "trainer/comm/world.h"
#include "trainer/metrics/reporter.h"
#include "trainer/session/run_request.h"
#include "trainer/session/session.h"

namespace tycho {

/// Opens the run of `request`, ready for its next step. `display`, which may be null, gets the run's reports
/// in addition to the files of its folder. `stop` holds the number of the signal that asked for a stop, or 0,
/// and must outlive the session. Throws Error.
std::unique_ptr<TrainingSession> open_session(const RunRequest& request, std::unique_ptr<Reporter> display,
                                              const std::atomic<int>& stop);

/// Same as above, with `make_world` to meet the other ranks.
std::unique_ptr<TrainingSession> open_session(const RunRequest& request, std::unique_ptr<Reporter> display,
                                              const std::atomic<int>& stop, const WorldMaker& make_world);

}  // namespace tycho
