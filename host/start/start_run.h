// The last part of `tycho run` and similar verbs: from a resolved recipe to the engine.
#pragma once
#include <string>
#include <vector>

#include "bindings/define/recipe.h"
#include "host/start/choose_mesh.h"
#include "trainer/base/json.h"
#include "trainer/hub/hub_pins.h"
#include "trainer/session/run_request.h"

namespace tycho {

/// Returns the commits of the hub's branches in a recipe's history, or in a run's provenance.json.
HubPins commits_in(const Json& history);

/// Makes the engine's request. `argv` is the command recorded in the run folder, from "tycho" on; `until` is
/// a duration after which the run is saved and left, "" for its end.
RunRequest make_run_request(const ResolvedRecipe& recipe, const std::vector<PinArgument>& pins,
                            const std::vector<std::string>& argv, const std::string& until = "");

/// Returns a warning when the recipe, not an argument, puts a new run outside the working directory; ""
/// otherwise.
std::string folder_warning(const ResolvedRecipe& recipe);

/// Returns the recipe with rank 0's commits of the hub: a run has one commit of a branch, whatever the caches
/// of its machines say. Fetches what this machine lacks of them. Throws Error if it cannot have them.
ChosenRecipe with_commits(const HubPins& commits, const RecipeRequest& request);

/// Options of a run that are not in the recipe.
struct RunOptions {
  bool plain = false;     // key=value lines, also at a terminal
  std::string until;      // see make_run_request
  bool paranoid = false;  // see RunRequest
  bool force = false;     // see RunRequest
};

/// Throws RecipeError (kUnusable) with the places of all files that a run of this recipe reads and that do
/// not exist, or of local samples that do not fit it. `request`: the one that gave the recipe.
void require_files(const ResolvedRecipe& recipe, RecipeRequest request);

/// Trains and returns the exit code. `argv` excludes the choices, which are added to it. When a rank has too
/// little memory before the first step, a chosen micro_batch is halved and the run is started again on all
/// ranks; also if ranks have other commits of the hub than rank 0, with its commits. Throws Error.
int start_run(const ChosenRecipe& chosen, const RecipeRequest& recipe_request,
              const std::vector<std::string>& argv, const RunOptions& options);

}  // namespace tycho
