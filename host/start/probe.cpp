// Opens a recipe in a throw-away folder and measures its first steps.
#include "host/start/probe.h"

#include <unistd.h>

#include <filesystem>

#include "host/engine.h"
#include "host/start/start_run.h"
#include "host/throw_away_folder.h"
#include "trainer/base/error.h"
#include "trainer/base/hash.h"
#include "trainer/rendezvous/rank_cores.h"

namespace tycho {
namespace {

constexpr int64_t kSteps = 3;

/// Returns a folder for temporary files, the same for all ranks of a run, whose recipes are compared.
std::string folder_of(const RankInfo& place) {
  const std::string meeting = fmt::format("{}:{} {}", place.address, place.port, place.token);
  const std::string name = place.num_ranks == 1 ? std::to_string(getpid()) : hash_hex(meeting).substr(0, 12);
  std::error_code error;
  const std::filesystem::path temporary = std::filesystem::temp_directory_path(error);
  if (error)
    fail(ExitCode::kStorage,
         "[probe] there is no folder for temporary files ({}): set TMPDIR to an existing folder",
         error.message());
  return (temporary / ("tycho-probe-" + name)).string();
}

/// Returns a request that runs the recipe from its beginning in another folder.
RunRequest request_of(ResolvedRecipe recipe, const RankInfo& place, const std::string& folder,
                      const ProfileConfig& profile) {
  recipe.config.run_dir = folder;
  recipe.config.resume = "none";
  recipe.config.profile = profile;
  RunRequest request = make_run_request(recipe, {}, {"tycho", "plan", "--probe"});
  request.place = place;
  return request;
}

}  // namespace

int try_recipe(const ResolvedRecipe& recipe, const RankInfo& place, const ProfileConfig& profile,
               const std::function<void(TrainingSession&)>& body) {
  const std::string folder = folder_of(place);
  return in_throw_away_folder(folder, place.rank == 0, [&] {
    static const StopFlag kNeverStops{0};  // a signal ends this process at once: there is nothing to save
    const EngineApi& engine = open_engine(threads_of_rank(recipe.config.threads, place));
    const auto session = engine.open(request_of(recipe, place, folder, profile), nullptr, kNeverStops);
    body(*session);
    return 0;
  });
}

int probe_recipe(const ResolvedRecipe& recipe, const RankInfo& place,
                 const std::function<void(const Probe&, const RunInfo&)>& show) {
  return try_recipe(recipe, place, {}, [&](TrainingSession& session) {
    const Probe measured = probe(session, kSteps);
    if (place.rank == 0) show(measured, session.facts().run);
  });
}

}  // namespace tycho
