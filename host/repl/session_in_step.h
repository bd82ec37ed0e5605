// An open run whose ranks are at one prompt.
#pragma once
#include <memory>

#include "host/repl/in_step.h"
#include "trainer/session/session.h"

namespace tycho {

/// The session, but what is collective in it asks `ranks` first, which outlives it: a rank that calls
/// something else gets a ScriptError, and no other waits for it.
std::unique_ptr<TrainingSession> keep_in_step(std::unique_ptr<TrainingSession> session, InStep& ranks);

}  // namespace tycho
