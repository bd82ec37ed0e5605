// A whole run over an open session. Torch-free.
#pragma once
#include "trainer/session/session.h"

namespace tycho {

/// Trains to the end or a stop, ends the run's record, and draws the losses on standard output when the
/// recipe asks for it. Returns 0, or 128 + the signal that stopped it. On an Error the record says so; the
/// session can still be looked at.
int train_to_end(TrainingSession& session);

}  // namespace tycho
