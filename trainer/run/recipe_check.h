// Ensures that all ranks train the same recipe.
#pragma once
#include "trainer/comm/communicator.h"
#include "trainer/session/run_request.h"

namespace tycho {

/// Compares the configuration of every rank: the resolved recipe, its Lua files and its tabulated schedule.
/// Collective, and the first collective of a run. Throws Error (kTopology) on every rank when they differ,
/// with the first rank that differs and the difference; if commits of the hub differ, also sets
/// request.commits_of_rank_0.
void require_same_recipe(Communicator& world, const RunRequest& request);

}  // namespace tycho
