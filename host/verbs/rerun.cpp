// tycho rerun: starts a run again, from the recipe text in its folder.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "bindings/import/import.h"
#include "host/signals.h"
#include "host/start/choose_mesh.h"
#include "host/start/start_run.h"
#include "host/verb.h"
#include "trainer/base/secrets.h"
#include "trainer/base/text/shell_words.h"
#include "trainer/rendezvous/rank_place.h"
#include "trainer/run_folder/run_record.h"

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

const Verb& run_verb() {
  static const Verb verb = {"run", kRunSpec, run_run};
  return verb;
}

/// Returns the arguments of the `tycho run` that started the run.
std::vector<std::string> old_arguments(const RunRecord& record) {
  const std::vector<std::string>& argv = record.argv;
  if (argv.size() < 3 || argv[0] != "tycho" || argv[1] != "run") {
    fail(ExitCode::kUnusable, "[tycho rerun] {}/argv.txt does not hold a `tycho run` command: {}",
         record.folder, shell_line(argv));
  }
  return {argv.begin() + 2, argv.end()};
}

/// Sets a variable to its value in a run, or unsets it for null. A masked one keeps its present value.
void restore_variable(const std::string& name, const Json& value) {
  if (value.is_null())
    unsetenv(name.c_str());
  else if (value.is_string() && value.get<std::string>().find(kMasked) == std::string::npos)
    setenv(name.c_str(), value.get<std::string>().c_str(), /*overwrite=*/1);
}

/// Restores the variables that the recipe read, and the search path for its files, which determines the names
/// of its sources.
void restore_environment(const RunRecord& record) {
  constexpr std::string_view kKey = "env.";
  constexpr const char* kSearchPath = "TYCHO_PATH";
  if (!record.environment.empty())
    restore_variable(kSearchPath, record.environment.value(kSearchPath, Json()));
  for (const auto& [key, history] : record.provenance.items())
    if (key.starts_with(kKey)) restore_variable(key.substr(kKey.size()), history.at(0).at("value"));
}

/// Returns the request that `tycho run` would make with these arguments, read only from the stored sources.
RecipeRequest stored_request(const std::vector<std::string>& argv,
                             const std::map<std::string, std::string>& sources, bool trace) {
  bool help = false;
  RecipeRequest request = recipe_words(parse_arguments(run_verb(), argv, help));
  request.files = sources;
  request.only_files = true;
  request.trace = trace;
  import_request(request);
  return request;
}

/// Returns "<text>-2", or the first number after it for which no folder exists.
std::string numbered(const std::string& text, const std::string& folder) {
  int number = 2;
  while (std::filesystem::exists(fmt::format("{}-{}", folder, number))) ++number;
  return fmt::format("{}-{}", text, number);
}

bool names_folder(const std::string& word) {
  return word.starts_with("run_name=") || word.starts_with("run_dir=");
}

/// Returns true when this process may choose a free name. Several ranks may not: they would look at different
/// times and find each other's folder, so the user must name the folder, which is resumed if it exists.
bool chooses_folder(const std::vector<std::string>& words) {
  const RankPlace place = find_rank_place(process_environment());
  if (place.num_ranks == 1) return true;
  if (std::any_of(words.begin(), words.end(), names_folder)) return false;
  fail(ExitCode::kUsage,
       "[tycho rerun] {} ranks need run_name=NAME or run_dir=FOLDER among the arguments, got {}",
       place.num_ranks, shell_line(words));
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
  const RunRecord record = read_run_record(word(arguments, 0, "the folder of a run"));
  std::vector<std::string> argv = old_arguments(record);
  for (size_t i = 1; i < arguments.words.size(); ++i) {
    if (!is_override(arguments.words[i])) no_more_words(arguments, i);
    argv.push_back(arguments.words[i]);
  }
  const bool may_choose = chooses_folder(arguments.words);
  const std::map<std::string, std::string> sources = read_run_sources(record);
  restore_environment(record);
  const bool trace = arguments.has("trace");
  RecipeRequest request = stored_request(argv, sources, trace);
  const InterruptLua interruptible;
  ResolvedRecipe recipe = resolve_recipe(request);
  if (const std::optional<std::string> pin = may_choose ? fresh_folder(recipe.config) : std::nullopt) {
    argv.push_back(*pin);
    request = stored_request(argv, sources, trace);
    recipe = resolve_recipe(request);
  }
  const RankPlace place = find_rank_place(process_environment());
  const ChosenRecipe chosen = choose_mesh(std::move(recipe), request, devices_of(place));
  if (place.rank == 0) fmt::print(stderr, "{}", chosen.text);
  argv.insert(argv.begin(), {"tycho", "run"});
  if (arguments.has("print")) {
    argv.insert(argv.end(), chosen.choices.begin(), chosen.choices.end());
    fmt::print("# with the files in {}/sources\n{}\n", record.folder, shell_line(argv));
    return 0;
  }
  return start_run(chosen, request, argv, {.plain = arguments.has("plain")});
}

}  // namespace tycho
