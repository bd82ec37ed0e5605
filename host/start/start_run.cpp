// Runs a resolved recipe in the engine; starts again with a smaller micro_batch or rank 0's commits.
#include "host/start/start_run.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>

#include "bindings/run/lua_callbacks.h"
#include "host/engine.h"
#include "host/git_facts.h"
#include "host/signals.h"
#include "host/standard_streams.h"
#include "host/standard_terminal.h"
#include "trainer/base/error.h"
#include "trainer/base/secrets.h"
#include "trainer/metrics/reporter.h"
#include "trainer/plan/plan.h"
#include "trainer/rendezvous/rank_cores.h"
#include "trainer/run_folder/run_folder.h"
#include "trainer/sweep/policy.h"
#include "trainer/tasks/task_items.h"

namespace tycho {

HubPins commits_in(const Json& history) {
  constexpr std::string_view kPrefix = "hub.";
  HubPins commits;
  for (const auto& [path, entries] : history.items())
    if (path.starts_with(kPrefix))
      commits[path.substr(kPrefix.size())] = entries.at(0).at("value").get<std::string>();
  return commits;
}

RunRequest make_run_request(const ResolvedRecipe& recipe, const std::vector<PinArgument>& pins,
                            const std::vector<std::string>& argv, const std::string& until) {
  RunRequest request;
  request.config = recipe.config;
  request.recipe_lua = recipe.lua;
  request.provenance_json = recipe.history.dump(1);
  request.recipe_hash = recipe.hash;
  request.commits = commits_in(recipe.history);
  request.sources = recipe.sources;
  request.argv = argv;
  request.until = until;
  for (const PinArgument& pin : pins) request.pins.push_back(pin.text);
  return request;
}

std::string folder_warning(const ResolvedRecipe& recipe) {
  namespace fs = std::filesystem;
  const fs::path here = fs::current_path();
  const fs::path folder = (here / run_folder_path(recipe.config)).lexically_normal();
  const bool is_outside = *folder.lexically_relative(here).begin() == "..";
  if (!is_outside || holds_record(folder.string())) return "";
  const Json writes = recipe.history.value("run_dir", Json::array());
  const auto newest = std::find_if(writes.rbegin(), writes.rend(),
                                   [](const Json& one) { return !one.value("shadowed", false); });
  if (newest == writes.rend() || newest->at("by") != "recipe") return "";
  return fmt::format(
      "warning: {} puts this run outside of the working directory, into {}. run_dir=PATH as an argument "
      "chooses another folder\n",
      newest->at("at").get<std::string>(), folder.string());
}

ChosenRecipe with_commits(const HubPins& commits, const RecipeRequest& request) {
  const RankInfo place = find_rank_place(process_environment());
  const HubPins own = hub_pins();
  std::string text;
  for (const auto& [name, commit] : commits)
    if (const auto mine = own.find(name); mine == own.end() || mine->second != commit)
      text += fmt::format("[hub] rank {} takes rank 0's commit of {}, {}\n", place.rank, name, commit);
  try {
    pin_hub(commits);
    ChosenRecipe chosen = choose_mesh(resolve_recipe(request), request, devices_of(place));
    chosen.text = text;
    return chosen;
  } catch (const Error& error) {
    fail(error.code(), "{}[hub] this machine cannot have it:\n{}", text, error.what());
  }
}

namespace {

Json with_git_facts(Json history) {
  history.update(git_facts(std::filesystem::current_path().string()));
  return history;
}

int run_once(const ChosenRecipe& chosen, std::vector<std::string> argv, const RunOptions& options,
             bool& before_first_step, HubPins& commits_of_rank_0) {
  never_wait_for_readers();
  const ResolvedRecipe& recipe = chosen.recipe;
  argv.insert(argv.end(), chosen.choices.begin(), chosen.choices.end());
  RunRequest request = make_run_request(recipe, chosen.pins, argv, options.until);
  request.paranoid = options.paranoid;
  request.force = options.force;
  request.before_first_step = &before_first_step;
  request.commits_of_rank_0 = &commits_of_rank_0;
  LuaCallbacks callbacks(recipe);
  request.callbacks = &callbacks;
  request.place = find_rank_place(process_environment());
  const bool live = isatty(STDOUT_FILENO) != 0 && !options.plain;
  StandardTerminal terminal(request.place.rank, live && can_redraw());
  callbacks.set_terminal(&terminal);
  if (request.place.rank == 0)
    std::fputs((folder_warning(recipe) + mesh_picture(recipe.config, request.place)).c_str(), stderr);
  if (request.place.rank == 0) request.provenance_json = with_git_facts(recipe.history).dump(1);
  const StopFlag& stop = stop_on_signals(live && request.place.rank == 0 && can_redraw());
  const int threads = threads_of_rank(recipe.config.threads, request.place);
  return open_engine(threads).run(request, live, stop);
}

/// Returns the recipe to start after this error; nullopt when it ends the run. All ranks get the error of one
/// rank, choose the same and meet again.
std::optional<ChosenRecipe> after_error(const Error& error, const ChosenRecipe& chosen,
                                        const RecipeRequest& recipe_request) {
  const RankInfo place = find_rank_place(process_environment());
  if (error.code() != ExitCode::kNumerics || !is_out_of_memory(error.what())) return {};
  return with_smaller_micro_batch(chosen, recipe_request, devices_of(place));
}

}  // namespace

void require_files(const ResolvedRecipe& recipe, RecipeRequest request) {
  if (missing_files(recipe.config).empty() && missing_task_files(recipe.config.icl).empty() &&
      unfit_samples(recipe.config).empty())
    return;
  request.needs_files = request.quiet = true;
  RecipeVerdict verdict = try_recipe(request);
  if (!verdict.recipe) throw RecipeError(verdict.report, std::move(verdict.problems), ExitCode::kUnusable);
}

int start_run(const ChosenRecipe& chosen, const RecipeRequest& recipe_request,
              const std::vector<std::string>& argv, const RunOptions& options) {
  ChosenRecipe now = chosen;
  while (true) {
    bool before_first_step = true;
    HubPins commits_of_rank_0;
    try {
      return run_once(now, argv, options, before_first_step, commits_of_rank_0);
    } catch (const Error& error) {
      // The engine names the first file that it missed, and no place in the recipe.
      if (before_first_step && commits_of_rank_0.empty() && error.code() == ExitCode::kUnusable)
        require_files(now.recipe, recipe_request);
      std::optional<ChosenRecipe> next = !commits_of_rank_0.empty()
                                             ? with_commits(commits_of_rank_0, recipe_request)
                                         : before_first_step ? after_error(error, now, recipe_request)
                                                             : std::nullopt;
      if (!next) throw;
      if (!commits_of_rank_0.empty())
        fmt::print(stderr, "{}", next->text);
      else if (find_rank_place(process_environment()).rank == 0)  // all ranks have the error of one
        fmt::print(stderr, "{}\n{}", without_secrets(error.what()), next->text);
      now = std::move(*next);
    }
  }
}

}  // namespace tycho
