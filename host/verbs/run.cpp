// tycho run: resolves the recipe, then hands it to the engine.
#include "host/signals.h"
#include "host/start_run.h"
#include "host/verb.h"

namespace tycho {

const VerbSpec kRunSpec = {
    "run RECIPE [key=value ...]",
    "Trains a recipe; key=value arguments win over what it says.",
    "  tycho run recipes/demo.lua optimizer.lr=1e-3 max_duration=100ba\n"
    "  tycho run runs/demo/recipe.lua                  # goes on from its newest checkpoint",
    {{"plain", "Print lines of key=value, also at a terminal."}, kTraceOption}};

namespace {

ResolvedRecipe resolve(const RecipeRequest& request) {
  const InterruptLua interruptible;
  return resolve_recipe(request);
}

}  // namespace

int run_run(const Arguments& arguments) {
  const RecipeRequest request = recipe_request(arguments);
  std::vector<std::string> argv = {"tycho", "run"};
  argv.insert(argv.end(), arguments.argv.begin(), arguments.argv.end());
  return start_run(resolve(request), request.pins, argv, arguments.has("plain"));
}

}  // namespace tycho
