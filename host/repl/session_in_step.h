// An open run whose ranks are at one prompt.
#pragma once
#include <memory>

#include "host/repl/in_step.h"
#include "trainer/session/session.h"

namespace tycho {

/// Wraps a session so that every collective call asks `ranks` first, which must outlive it. A rank that makes
/// another call gets a ScriptError, and no other rank waits for it.
std::unique_ptr<TrainingSession> keep_in_step(std::unique_ptr<TrainingSession> session, InStep& ranks);

}  // namespace tycho
