// Prepares sweeps.
#include "host/sweep/start.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "bindings/import/import.h"
#include "host/signals.h"
#include "host/verb.h"
#include "trainer/base/error.h"
#include "trainer/base/hash.h"
#include "trainer/base/nearest.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxChecked = 64;

bool has_few_values(const SpaceConfig& space) {
  if (!space.is<CasesSpace>()) return space.is<ChoiceSpace>() || space.is<ZipSpace>();
  const std::vector<SpaceCase>& cases = space.as<CasesSpace>().cases;
  return std::any_of(cases.begin(), cases.end(), [](const SpaceCase& one) { return one.is<ChoiceSpace>(); });
}

/// Returns the first trial, and those with a new value of a dimension that has few values.
std::vector<const TrialPlan*> telling_trials(const SweepDefinition& definition) {
  std::vector<const TrialPlan*> chosen;
  std::set<std::string> seen;
  for (const TrialPlan& trial : definition.trials) {
    bool is_new = chosen.empty();
    for (const auto& [key, space] : definition.config.space) {
      if (!has_few_values(space)) continue;
      for (const auto& [name, value] : trial.values)
        if (name == key || space.is<ZipSpace>()) is_new |= seen.insert(name + "=" + value).second;
    }
    if (is_new) chosen.push_back(&trial);
    if (chosen.size() == kMaxChecked) break;
  }
  return chosen;
}

/// Checks that the metric exists. `key` is the key that names it.
void check_metric(const std::string& key, const std::string& metric, const SweepDefinition& definition,
                  const TrainConfig& config) {
  if (!metric.starts_with("eval.")) return;
  const std::vector<std::string> known = eval_metrics(config.eval_data, !config.tokenizer.empty());
  if (known.empty())
    fail(ExitCode::kRecipe,
         "[sweep] {} is {}, but {} has no evaluation: set eval_data.NAME in it or in s.pins, or use a "
         "training metric such as loss",
         key, metric, definition.recipe);
  if (std::find(known.begin(), known.end(), metric) == known.end())
    fail(ExitCode::kRecipe, "[sweep] {} is {}, which is not a metric of {}; available: {}{}{}", key, metric,
         definition.recipe, fmt::join(known, ", "), why_not_measured(metric, known),
         did_you_mean(metric, known));
}

void check_metrics(const SweepDefinition& definition, const TrainConfig& config) {
  check_metric("metric.name", definition.config.metric.name, definition, config);
  for (const auto& [name, rule] : definition.config.stop)
    if (rule.is<PatienceRule>())
      check_metric(fmt::format("stop.{}.metric", name), rule.as<PatienceRule>().metric, definition, config);
  for (const std::string& column : definition.config.report.columns)
    check_metric("report.columns", column, definition, config);
}

std::map<std::string, std::string> hashes_of(const std::map<std::string, std::string>& sources) {
  std::map<std::string, std::string> hashes;
  for (const auto& [file, text] : sources) hashes[file] = hash_hex(text);
  return hashes;
}

SweepRequest request_for(const std::string& file, const std::vector<PinArgument>& arguments, bool of_recipe,
                         const std::string& name, int64_t trials) {
  SweepRequest request{.file = file, .arguments = arguments, .of_recipe = of_recipe, .name = name};
  if (of_recipe)
    request.trials = trials;
  else if (trials > 0)
    request.arguments.push_back({0, fmt::format("search.trials={}", trials)});
  return request;
}

/// Converts a request for a sweep of another system into one for a file made from it. Prints notes to stderr.
SweepRequest imported(SweepRequest request) {
  if (request.of_recipe || !is_foreign_recipe(request.file)) return request;
  const auto given = request.files.find(request.file);
  std::string text = given == request.files.end() ? read_file(request.file) : given->second;
  Imported made = import_recipe(request.file, text);
  for (const std::string& note : made.notes) print_note(request.file, note);
  request.origins[request.file] = {std::move(text), std::move(made.places)};
  request.file += ".lua";
  request.files[request.file] = std::move(made.lua);
  return request;
}

bool is_sweep_file(const std::string& file) {
  if (file.ends_with(".lua")) return is_sweep_text(read_file(file));
  return is_foreign_recipe(file) && is_foreign_sweep(file, read_file(file));
}

PreparedSweep make(const SweepRequest& request, const std::string& name) {
  const InterruptLua interruptible;
  PreparedSweep sweep;
  sweep.program = std::make_shared<SweepProgram>(imported(request));
  SweepDefinition& definition = sweep.definition;
  definition.name = name.empty() ? sweep.program->name() : name;
  definition.folder = fs::current_path().string();
  definition.file = request.file;
  for (const PinArgument& one : request.arguments) definition.arguments.push_back(one.text);
  if (request.of_recipe && request.trials > 0)
    definition.arguments.push_back(fmt::format("search.trials={}", request.trials));
  definition.of_recipe = request.of_recipe;
  definition.config = sweep.program->config();
  definition.tree = sweep.program->tree();
  definition.sources = sweep.program->sources();
  definition.recipe = definition.config.recipe;
  definition.trials = sweep.program->trials();
  for (const TrialPlan* trial : telling_trials(definition)) {
    const ResolvedRecipe recipe = resolve_plan(definition, *trial);
    definition.recipe_sources = hashes_of(recipe.sources);
    check_metrics(definition, recipe.config);
  }
  const std::string recipe_hash = recipe_identity_hash(definition.recipe_sources, definition.config.pins);
  for (TrialPlan& trial : definition.trials) trial.id = trial_id(trial.pins, recipe_hash);
  return sweep;
}

}  // namespace

ResolvedRecipe resolve_plan(const SweepDefinition& definition, const TrialPlan& trial) {
  RecipeRequest request;
  request.file = definition.recipe;
  for (const auto& [key, value] : definition.config.pins) request.pins.push_back({0, key + "=" + value});
  for (const std::string& pin : trial.pins) request.pins.push_back({0, pin});
  import_request(request);
  try {
    return resolve_recipe(request);
  } catch (const Error& error) {
    fail(error.code(), "{}\n[sweep] this is {} with {}", error.what(), definition.recipe,
         pins_text(trial.pins));
  }
}

PreparedSweep prepare_sweep(const SweepCommand& command) {
  const bool of_recipe = !is_sweep_file(command.file);
  const std::string name = command.name.empty() && of_recipe ? name_of_file(command.file) : command.name;
  return make(request_for(command.file, command.arguments, of_recipe, name, command.trials), name);
}

PreparedSweep prepare_again(const SweepFolder& folder, const std::vector<PinArgument>& more_arguments,
                            int64_t trials) {
  const SweepDefinition& old = folder.board().definition();
  fs::current_path(old.folder);
  std::vector<PinArgument> arguments;
  for (const std::string& one : old.arguments) arguments.push_back({0, one});
  arguments.insert(arguments.end(), more_arguments.begin(), more_arguments.end());
  SweepRequest request = request_for(old.file, arguments, old.of_recipe, old.name, 0);
  if (trials > 0) request.arguments.push_back({0, fmt::format("search.trials={}", trials)});
  if (!old.of_recipe && more_arguments.empty() && trials == 0) request.files = old.sources;
  return make(request, old.name);
}

SweepFolder open_folder_for(PreparedSweep& sweep) {
  SweepDefinition& definition = sweep.definition;
  const std::string name = definition.name;
  for (int number = 1;; ++number) {
    if (number > 1) definition.name = fmt::format("{}-{}", name, number);
    SweepFolder folder(real_files(), "sweeps/" + definition.name);
    folder.compact_if_due();
    const bool is_new = !folder.board().has_definition();
    std::string changes;
    if (!is_new)
      changes = recipe_changes(folder.board().definition().recipe_sources, definition.recipe_sources);
    if (changes.empty()) {
      folder.set_definition(definition);
      return folder;
    }
    fmt::print(stderr,
               "the recipe of sweeps/{} was different, so its trials cannot be compared with new ones:{}\n",
               definition.name, changes);
    fmt::print(stderr, "this sweep is now sweeps/{}-{}\n", name, number + 1);
  }
}

void check_recipe_unchanged(const SweepDefinition& definition) {
  std::map<std::string, std::string> now;
  for (const auto& [file, hash] : definition.recipe_sources)
    if (const fs::path path = fs::path(definition.folder) / file; fs::exists(path))
      now[file] = hash_hex(read_file(path.string()));
  const std::string changes = recipe_changes(definition.recipe_sources, now);
  if (changes.empty()) return;
  fail(ExitCode::kRecipe,
       "[sweep] the recipe has changed since sweep {} began:{}\n"
       "restore it, or start the sweep from its file again, which makes a new sweep",
       definition.name, changes);
}

}  // namespace tycho
