// tycho rerun: starts a run again, from the recipe text in its folder.
#include <filesystem>
#include <optional>

#include "host/signals.h"
#include "host/start/choose_mesh.h"
#include "host/start/rerun_request.h"
#include "host/start/start_run.h"
#include "host/verb.h"
#include "trainer/base/text/shell_words.h"
#include "trainer/rendezvous/rank_info.h"

namespace tycho {

const VerbSpec kRerunSpec = {
    "rerun RUN [key=value ...]",
    "Starts a new run from the recipe, arguments and environment saved in a run folder.",
    "  tycho rerun runs/demo\n"
    "  tycho rerun runs/demo 'optimizer.lr*=2' run_name=demo-lr2\n"
    "  tycho rerun runs/demo --print\n"
    "  srun tycho rerun runs/demo run_name=demo-2      # several ranks need the same name",
    {{"print", "Show the command without running it."},
     {"plain", "Print lines of key=value even at a terminal."},
     kTraceOption}};

namespace {

/// Returns "<text>-2", or the first number after it for which no folder exists.
std::string numbered(const std::string& text, const std::string& folder) {
  int number = 2;
  while (std::filesystem::exists(fmt::format("{}-{}", folder, number))) ++number;
  return fmt::format("{}-{}", text, number);
}

/// Returns the argument that gives a run a folder of its own; nullopt when it has one.
std::optional<std::string> fresh_folder(const TrainConfig& config) {
  const std::string folder = run_folder_path(config);
  if (!std::filesystem::exists(folder)) return std::nullopt;
  const bool by_name = config.run_dir.ends_with("{run_name}");
  return by_name ? "run_name=" + numbered(config.run_name, folder) : "run_dir=" + numbered(folder, folder);
}

}  // namespace

int run_rerun(const Arguments& arguments) {
  const RankInfo place = find_rank_place(process_environment());
  RerunRequest rerun = rerun_request(arguments, place.num_ranks);
  RecipeRequest request = rerun.recipe_request();
  const InterruptLua interruptible;
  ResolvedRecipe recipe = resolve_recipe(request);
  if (const std::optional<std::string> pin =
          rerun.may_choose_folder ? fresh_folder(recipe.config) : std::nullopt) {
    rerun.argv.push_back(*pin);
    request = rerun.recipe_request();
    recipe = resolve_recipe(request);
  }
  const ChosenRecipe chosen = choose_mesh(std::move(recipe), request, devices_of(place));
  if (place.rank == 0) fmt::print(stderr, "{}", chosen.text);
  std::vector<std::string> argv = {"tycho", "run"};
  argv.insert(argv.end(), rerun.argv.begin(), rerun.argv.end());
  if (arguments.has("print")) {
    argv.insert(argv.end(), chosen.choices.begin(), chosen.choices.end());
    fmt::print("# with the files in {}/sources\n{}\n", rerun.folder, shell_line(argv));
    return 0;
  }
  return start_run(chosen, request, argv, {.plain = arguments.has("plain")});
}

}  // namespace tycho
