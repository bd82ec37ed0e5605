// tycho run: resolves the recipe, then hands it to the engine.
#include <filesystem>
#include <utility>

#include "host/recipe_words.h"
#include "host/repl/post_mortem.h"
#include "host/signals.h"
#include "host/standard_streams.h"
#include "host/start/choose_mesh.h"
#include "host/start/start_run.h"
#include "host/verb.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/text/shell_words.h"
#include "trainer/hub/hub_pins.h"

namespace tycho {

const VerbSpec kRunSpec = {
    "run RECIPE [key=value ...]",
    "Trains a recipe; key=value arguments override it.",
    "  tycho run recipes/demo.lua optimizer.lr=1e-3 max_duration=100ba\n"
    "  tycho run runs/demo/recipe.lua                  # resumes from its newest checkpoint\n"
    "  tycho run recipes/demo.lua 'optimizer.lr*=0.5' --print-only",
    {{"plain", "Print lines of key=value even at a terminal."},
     {"on-error", "stop; or repl: open a prompt with the run in the state the error left.", "WHAT", "stop"},
     {"until", "Save and end after this much of the run (300ba, 0.5dur), without changing its schedule.",
      "DURATION"},
     {"paranoid", "Check after every step that ranks agree, and compare their weights every 100 steps."},
     {"force",
      "Start even if `tycho plan` counts more memory than is free, or if the last three starts died before "
      "they saved."},
     {"print-only", "Print the resolved recipe, with the effect of each argument, without running it."},
     kTraceOption}};

namespace {

/// Fixes the commits of the hub's names that the run in this folder began with, for a revision may have moved
/// since. Returns true if the recipe must be resolved again for it.
bool pin_as_before(const ResolvedRecipe& recipe) {
  const std::string file = run_folder_path(recipe.config) + "/provenance.json";
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return false;
  const Json before = Json::parse(read_file(file), nullptr, false);
  if (!before.is_object()) return false;
  HubPins commits = commits_in(before);
  const HubPins now = commits_in(recipe.history);
  std::erase_if(commits, [&](const auto& one) {
    const auto found = now.find(one.first);
    return found == now.end() || found->second == one.second;
  });
  pin_hub(commits);
  return !commits.empty();
}

/// Resolves the recipe with a mesh chosen for the ranks of this run; rank 0 prints the choice.
ChosenRecipe resolve(const RecipeRequest& request, const RankInfo& place) {
  const InterruptLua interruptible;
  ResolvedRecipe recipe = resolve_recipe(request);
  if (pin_as_before(recipe)) recipe = resolve_recipe(request);
  ChosenRecipe chosen = choose_mesh(std::move(recipe), request, devices_of(place));
  if (place.rank == 0) fmt::print(stderr, "{}", chosen.text);
  return chosen;
}

std::string read_until(const std::string& text) {
  try {
    const Duration duration = Duration::parse(text);
    if (duration.value > 0 && duration.unit != DurationUnit::kSecond) return text;
  } catch (const Error&) {
    // The message below says what is wanted here.
  }
  fail(ExitCode::kUsage,
       "[tycho run] --until expected a duration such as 300ba, 1e9tok or 0.5dur, got \"{}\"", text);
}

/// Returns a line for each key that an argument set: "-- argument 2  seed=3  gives  seed = 3".
std::string argument_lines(const PinArgument& pin, const Json& history) {
  const std::string place = fmt::format("argument {}", pin.number);
  std::string lines;
  for (const auto& [path, entries] : history.items()) {
    for (const Json& entry : entries) {
      if (entry.value("by", "") != "argument" || entry.value("at", "") != place) continue;
      lines += fmt::format("-- {}  {}  gives  {} = {}\n", place, pin.text, path,
                           entry.at("value").get<std::string>());
    }
  }
  return lines.empty() ? fmt::format("-- {}  {}\n", place, pin.text) : lines;
}

/// Prints a recipe that runs like this command, with comments on the origin of its values.
void print_run(const ChosenRecipe& chosen, const std::vector<std::string>& argv) {
  const ResolvedRecipe& recipe = chosen.recipe;
  print_exact_text();
  fmt::print("-- {}\n", shell_line(argv));
  for (const PinArgument& pin : chosen.pins) fmt::print("{}", argument_lines(pin, recipe.history));
  fmt::print("-- run folder {}, hash {}\n\n{}", run_folder_path(recipe.config), recipe.hash, recipe.lua);
}

}  // namespace

int run_run(const Arguments& arguments) {
  const RecipeRequest request = recipe_request(arguments);
  const RunOptions options = {.plain = arguments.has("plain"),
                              .until = arguments.has("until") ? read_until(arguments.text("until")) : "",
                              .paranoid = arguments.has("paranoid"),
                              .force = arguments.has("force")};
  const RankInfo place = find_rank_place(process_environment());
  const bool looks_at_failures = wants_to_look(arguments.text("on-error"), place.rank);
  const ChosenRecipe chosen = resolve(request, place);

  std::vector<std::string> argv = {"tycho", "run"};
  argv.insert(argv.end(), arguments.argv.begin(), arguments.argv.end());
  if (!looks_at_failures && !arguments.has("print-only")) return start_run(chosen, request, argv, options);

  argv.insert(argv.end(), chosen.choices.begin(), chosen.choices.end());
  if (arguments.has("print-only")) {
    print_run(chosen, argv);
    return 0;
  }
  ReplOptions prompt = {.recipe = request, .argv = argv, .place = place};
  prompt.recipe.pins = chosen.pins;
  return run_then_look(chosen.recipe, prompt, options);
}

}  // namespace tycho
