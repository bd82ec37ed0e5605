// Opens libtycho_engine.so: only verbs that compute do, so that all others start in milliseconds.
#pragma once
#include "trainer/engine/engine.h"

namespace tycho {

/// Opens the engine beside this program (../lib or the same folder) and keeps it open. `threads`: as in the
/// recipe, 0 for one per core. Sets how OpenMP waits and how malloc keeps memory first, unless the user's
/// environment says so already. Throws Error (kFailure) that says which library is missing.
const EngineApi& open_engine(int threads);

}  // namespace tycho
