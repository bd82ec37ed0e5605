// Sends lines of Lua to a live run.
#pragma once
#include <string>

namespace tycho {

/// What the run answers. Throws Error: kUnusable when nothing runs there, kRecipe for what the run refuses.
std::string tell_run(const std::string& run_dir, const std::string& code, bool may_command);

}  // namespace tycho
