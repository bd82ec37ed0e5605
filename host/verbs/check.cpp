// tycho check: checks a recipe.
#include "host/signals.h"
#include "host/verb.h"
#include "trainer/config/config_io.h"
#include "trainer/config/train_config.h"

namespace tycho {

const VerbSpec kCheckSpec = {"check RECIPE [key=value ...]",
                             "Checks a recipe without training.",
                             "  tycho check recipes/demo.lua optimizer.lr=1e-3",
                             {kJsonOption, kTraceOption}};

int run_check(const Arguments& arguments) {
  const InterruptLua interruptible;
  RecipeRequest request = recipe_request(arguments);
  request.lint = true;
  const ResolvedRecipe recipe = resolve_recipe(request);
  // A mesh that cannot be is known before there are ranks.
  require_valid(recipe.config, fewest_ranks(recipe.config.parallel));
  if (arguments.has("json")) {
    Json shown = recipe_identity(recipe);
    shown["warnings"] = recipe.warnings;
    shown["config"] = recipe.tree;
    fmt::print("{}\n", shown.dump(2));
  } else {
    const size_t count = recipe.warnings.size();
    const std::string warned = count == 0 ? "" : fmt::format(", {} warning{}", count, count == 1 ? "" : "s");
    fmt::print("{}: no problems{}, hash {}\n", recipe.name, warned, recipe.hash);
  }
  return 0;
}

}  // namespace tycho
