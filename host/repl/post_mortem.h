// A run that is looked at when it fails.
#pragma once
#include "bindings/define/recipe.h"
#include "host/repl/repl.h"

namespace tycho {

/// Trains like start_run, on a terminal; after an Error a prompt opens with the run as that left it. Returns
/// the exit code, the Error's too. `until` as in RunRequest.
int run_then_look(const ResolvedRecipe& recipe, const ReplOptions& repl, bool plain,
                  const std::string& until);

}  // namespace tycho
