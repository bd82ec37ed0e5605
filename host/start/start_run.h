// From a resolved recipe to the engine: what `tycho run` and its like do last.
#pragma once
#include <string>
#include <vector>

#include "bindings/define/recipe.h"
#include "host/start/choose_mesh.h"
#include "trainer/run_folder/run_folder.h"

namespace tycho {

/// What the engine is asked. `argv`: what the run folder remembers as its command, from "tycho" on; `until`:
/// a duration after which the run is saved and left, "" for its end.
RunRequest make_run_request(const ResolvedRecipe& recipe, const std::vector<PinArgument>& pins,
                            const std::vector<std::string>& argv, const std::string& until = "");

/// A warning when the recipe, and no argument, puts a new run outside of the working directory; "" otherwise.
std::string folder_warning(const ResolvedRecipe& recipe);

/// How to run it, beside what the recipe says.
struct RunOptions {
  bool plain = false;     // lines of key=value, also at a terminal
  std::string until;      // as in make_run_request
  bool paranoid = false;  // as in RunRequest
  bool force = false;     // likewise
};

/// Trains, and returns the exit code. `argv` is without the choices, which are added to it. A micro_batch
/// that was chosen is halved, and the run started again on all ranks, when one has too little memory before
/// the first step. Throws Error.
int start_run(const ChosenRecipe& chosen, const RecipeRequest& recipe_request,
              const std::vector<std::string>& argv, const RunOptions& options);

}  // namespace tycho
