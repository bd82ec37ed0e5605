// tycho check: is this recipe right?
#include "host/signals.h"
#include "host/verb.h"

namespace tycho {

const VerbSpec kCheckSpec = {"check RECIPE [key=value ...]",
                             "Runs a recipe's checks; trains nothing.",
                             "  tycho check recipes/demo.lua optimizer.lr=1e-3",
                             {kJsonOption, kTraceOption}};

int run_check(const Arguments& arguments) {
  const InterruptLua interruptible;
  const ResolvedRecipe recipe = resolve_recipe(recipe_request(arguments));
  if (arguments.has("json")) {
    Json shown = recipe_identity(recipe);
    shown["config"] = recipe.tree;
    fmt::print("{}\n", shown.dump(2));
  } else {
    fmt::print("{}: no problems, hash {}\n", recipe.name, recipe.hash);
  }
  return 0;
}

}  // namespace tycho
