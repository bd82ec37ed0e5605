// From a resolved recipe to the engine: what `tycho run` and its like do last.
#pragma once
#include <string>
#include <vector>

#include "bindings/define/recipe.h"

namespace tycho {

/// Trains, and returns the exit code. `argv`: what the run folder remembers as its command, from "tycho" on;
/// `plain`: lines of key=value, also at a terminal; `until`: a duration after which
/// the run is saved and left, "" for its end. Throws Error.
int start_run(const ResolvedRecipe& recipe, const std::vector<PinArgument>& pins,
              const std::vector<std::string>& argv, bool plain, const std::string& until = "");

}  // namespace tycho
