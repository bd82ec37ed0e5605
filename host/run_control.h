// Sends lines of Lua to a live run.
#pragma once
#include <string>

namespace tycho {

/// Sends code to a run and returns its answer. Throws Error: kUnusable when no run is active there, kRecipe
/// when the run refuses the code.
std::string tell_run(const std::string& run_dir, const std::string& code, bool may_command);

}  // namespace tycho
