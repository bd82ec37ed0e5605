// A whole run over an open session. Torch-free.
#pragma once
#include "trainer/session/session.h"

namespace tycho {

/// Trains to the end or a stop, ends the run's record, and plots the losses on standard output when the
/// recipe asks for it. Returns 0, or 128 + the signal that stopped it. On an Error the record says so, and
/// the session stays usable for inspection.
int train_to_end(TrainingSession& session);

}  // namespace tycho
