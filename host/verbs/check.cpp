// tycho check: checks a recipe.
#include "host/recipe_words.h"
#include "host/signals.h"
#include "host/verb.h"
#include "trainer/hub/hub_files.h"
#include "trainer/recipe/config_io.h"
#include "trainer/recipe/config_rules.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

const VerbSpec kCheckSpec = {"check RECIPE [key=value ...]",
                             "Checks a recipe without training.",
                             "  tycho check recipes/demo.lua optimizer.lr=1e-3",
                             {kJsonOption, kTraceOption}};

namespace {

/// Reports an impossible mesh before there are ranks.
void require_mesh(const ResolvedRecipe& recipe) {
  const int64_t num_ranks = fewest_ranks(recipe.config.parallel);
  try {
    require_valid(recipe.config, num_ranks);
  } catch (const Error& error) {
    ProblemList problems = Json::array();
    for (const ConfigProblem& one : check_config(recipe.config, num_ranks))
      problems.push_back({{"path", one.path}, {"message", one.message}});
    throw RecipeError(error.what(), std::move(problems), error.code());
  }
}

}  // namespace

int run_check(const Arguments& arguments) {
  set_hub_access(HubAccess::kCacheOnly);
  const InterruptLua interruptible;
  RecipeRequest request = recipe_request(arguments);
  request.lint = true;
  const ResolvedRecipe recipe = resolve_recipe(request);
  require_mesh(recipe);
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
