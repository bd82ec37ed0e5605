// tycho run: resolves the recipe, then hands it to the engine.
#include <unistd.h>

#include "host/engine.h"
#include "host/signals.h"
#include "host/verb.h"

namespace tycho {

const VerbSpec kRunSpec = {
    "run RECIPE [key=value ...]",
    "Trains a recipe; key=value arguments win over what it says.",
    "  tycho run recipes/demo.lua optimizer.lr=1e-3 max_duration=100ba\n"
    "  tycho run runs/demo/recipe.lua                  # goes on from its newest checkpoint",
    {{"plain", "Print lines of key=value, also at a terminal."}, kTraceOption}};

namespace {

RunRequest to_run_request(const ResolvedRecipe& recipe, const Arguments& arguments) {
  RunRequest request;
  request.config_json = canonical_json(recipe.tree);
  request.recipe_lua = recipe.lua;
  request.provenance_json = recipe.history.dump(1);
  request.recipe_hash = recipe.hash;
  request.sources = recipe.sources;
  request.argv = {"tycho", "run"};
  request.argv.insert(request.argv.end(), arguments.argv.begin(), arguments.argv.end());
  for (const PinArgument& pin : recipe_request(arguments).pins) request.pins.push_back(pin.text);
  return request;
}

ResolvedRecipe resolve(const Arguments& arguments) {
  const InterruptLua interruptible;
  return resolve_recipe(recipe_request(arguments));
}

}  // namespace

int run_run(const Arguments& arguments) {
  const ResolvedRecipe recipe = resolve(arguments);
  const StopFlag& stop = stop_on_signals();
  const bool live = isatty(STDOUT_FILENO) != 0 && !arguments.has("plain");
  const EngineApi& engine = open_engine(static_cast<int>(recipe.config.threads));
  return engine.run(to_run_request(recipe, arguments), live, stop);
}

}  // namespace tycho
