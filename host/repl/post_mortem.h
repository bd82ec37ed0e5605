// A prompt for a run that failed.
#pragma once
#include <string>

#include "bindings/define/recipe.h"
#include "host/repl/repl.h"
#include "host/start/start_run.h"

namespace tycho {

/// Reads --on-error: returns true for repl, which needs a terminal at rank 0, false for stop. Throws Error
/// (kUsage).
bool wants_to_look(const std::string& on_error, int rank);

/// Trains like start_run, on a terminal. After an Error, opens a prompt with the run in the state of the
/// failure. Among several ranks, rank 0 has the terminal, and the others wait half an hour for an entry.
/// Returns the exit code, also that of the Error.
int run_then_look(ResolvedRecipe recipe, const ReplOptions& repl, const RunOptions& options);

}  // namespace tycho
