// Builds the engine's request from a resolved recipe.
#include "host/start_run.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "bindings/run/lua_callbacks.h"
#include "host/choose_mesh.h"
#include "host/engine.h"
#include "host/git_facts.h"
#include "host/signals.h"
#include "trainer/base/error.h"
#include "trainer/metrics/reporter.h"
#include "trainer/rendezvous/rank_cores.h"

namespace tycho {

RunRequest make_run_request(const ResolvedRecipe& recipe, const std::vector<PinArgument>& pins,
                            const std::vector<std::string>& argv, const std::string& until) {
  RunRequest request;
  request.config = recipe.config;
  request.recipe_lua = recipe.lua;
  request.provenance_json = recipe.history.dump(1);
  request.recipe_hash = recipe.hash;
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

namespace {

Json with_git_facts(Json history) {
  history.update(git_facts(std::filesystem::current_path().string()));
  return history;
}

}  // namespace

int start_run(const ResolvedRecipe& recipe, const std::vector<PinArgument>& pins,
              const std::vector<std::string>& argv, const RunOptions& options) {
  RunRequest request = make_run_request(recipe, pins, argv, options.until);
  request.paranoid = options.paranoid;
  request.force = options.force;
  LuaCallbacks callbacks(recipe);
  request.callbacks = &callbacks;
  request.place = find_rank_place(process_environment());
  if (request.place.rank == 0)
    std::fputs((folder_warning(recipe) + mesh_picture(recipe.config, request.place)).c_str(), stderr);
  if (request.place.rank == 0) request.provenance_json = with_git_facts(recipe.history).dump(1);
  const bool live = isatty(STDOUT_FILENO) != 0 && !options.plain;
  const StopFlag& stop = stop_on_signals(live && request.place.rank == 0 && can_redraw());
  const int threads = threads_of_rank(recipe.config.threads, request.place);
  return open_engine(threads).run(request, live, stop);
}

}  // namespace tycho
