// Builds the engine's request from a resolved recipe.
#include "host/start_run.h"

#include <unistd.h>

#include <filesystem>

#include "bindings/run/lua_callbacks.h"
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
  request.config_json = canonical_json(recipe.tree);
  request.recipe_lua = recipe.lua;
  request.provenance_json = recipe.history.dump(1);
  request.recipe_hash = recipe.hash;
  request.sources = recipe.sources;
  request.argv = argv;
  request.until = until;
  for (const PinArgument& pin : pins) request.pins.push_back(pin.text);
  request.schedule = recipe.schedule;
  return request;
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
  LuaCallbacks callbacks(recipe);
  request.callbacks = &callbacks;
  request.place = find_rank_place(process_environment());
  if (request.place.rank == 0) request.provenance_json = with_git_facts(recipe.history).dump(1);
  const bool live = isatty(STDOUT_FILENO) != 0 && !options.plain;
  const StopFlag& stop = stop_on_signals(live && request.place.rank == 0 && can_redraw());
  const int threads = threads_of_rank(recipe.config.threads, request.place);
  return open_engine(threads).run(request, live, stop);
}

}  // namespace tycho
