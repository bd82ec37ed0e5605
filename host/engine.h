// Opens libtycho_engine.so: only verbs that compute do, so that all others start in milliseconds.
#pragma once
#include "trainer/session/engine.h"

namespace tycho {

/// Opens the engine beside this program (../lib or the same folder) and keeps it open. `threads` is the
/// recipe's, 0 for one per core. First sets how OpenMP waits and how malloc keeps memory, unless the user's
/// environment sets them. Throws Error (kFailure) that says which library is missing.
const EngineApi& open_engine(int threads);

/// Names what eval, generate and chat take, in messages.
inline constexpr char kTrainedModel[] =
    "a run folder, a checkpoint, a Hugging Face folder or hf://OWNER/NAME";

}  // namespace tycho
