// tycho run: resolves the recipe, then hands it to the engine.
#include <unistd.h>

#include "host/repl/post_mortem.h"
#include "host/signals.h"
#include "host/start_run.h"
#include "host/verb.h"

namespace tycho {

const VerbSpec kRunSpec = {
    "run RECIPE [key=value ...]",
    "Trains a recipe; key=value arguments win over what it says.",
    "  tycho run recipes/demo.lua optimizer.lr=1e-3 max_duration=100ba\n"
    "  tycho run runs/demo/recipe.lua                  # goes on from its newest checkpoint",
    {{"plain", "Print lines of key=value, also at a terminal."},
     {"on-error", "stop, or repl: a prompt with the run as the error left it.", "WHAT", "stop"},
     {"until", "Save and end after this much of the run (300ba, 0.5dur); its schedule stays as it is.",
      "DURATION"},
     kTraceOption}};

namespace {

ResolvedRecipe resolve(const RecipeRequest& request) {
  const InterruptLua interruptible;
  return resolve_recipe(request);
}

std::string read_until(const std::string& text) {
  try {
    const Duration duration = Duration::parse(text);
    if (duration.value > 0 && duration.unit != DurationUnit::kSecond) return text;
  } catch (const Error&) {
    // Said below, with what was wanted here.
  }
  fail(ExitCode::kUsage,
       "[tycho run] --until wanted a part of the run such as 300ba, 1e9tok or 0.5dur, given \"{}\"", text);
}

}  // namespace

int run_run(const Arguments& arguments) {
  const RecipeRequest request = recipe_request(arguments);
  std::vector<std::string> argv = {"tycho", "run"};
  argv.insert(argv.end(), arguments.argv.begin(), arguments.argv.end());
  const std::string on_error = arguments.text("on-error");
  const bool plain = arguments.has("plain");
  const std::string until = arguments.has("until") ? read_until(arguments.text("until")) : "";
  if (on_error == "stop") return start_run(resolve(request), request.pins, argv, plain, until);
  if (on_error != "repl")
    fail(ExitCode::kUsage, "[tycho run] --on-error is stop or repl, given {}", on_error);
  require_one_rank("--on-error repl");
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0)
    fail(ExitCode::kUsage, "[tycho run] --on-error repl wants a terminal; without one, leave it out");
  ReplOptions repl;
  repl.recipe = request;
  repl.argv = argv;
  return run_then_look(resolve(request), repl, plain, until);
}

}  // namespace tycho
