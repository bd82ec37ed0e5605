// A few real steps of a recipe, whose results are discarded.
#pragma once
#include <functional>

#include "bindings/define/recipe.h"
#include "host/start/probed_steps.h"
#include "trainer/metrics/step_metrics.h"
#include "trainer/recipe/profiler.h"
#include "trainer/rendezvous/rank_info.h"
#include "trainer/session/session.h"

namespace tycho {

/// Opens a recipe, without its callbacks, in a temporary folder that is removed afterwards, and calls `body`
/// with the open run; `profile` replaces the recipe's. Collective over the ranks of `place`. Returns the exit
/// code: 0, or 128 + signal when one ended it, which happens at once. Throws Error.
int try_recipe(const ResolvedRecipe& recipe, const RankInfo& place, const ProfileConfig& profile,
               const std::function<void(TrainingSession&)>& body);

/// Trains three steps of a recipe on its own data, in a temporary folder that is removed afterwards, without
/// its callbacks, checkpoints and profiles. Collective over the ranks of `place`; rank 0 calls `show`.
/// Returns the exit code: 0, or 128 + signal when one ended it, which happens at once. Throws Error.
int probe_recipe(const ResolvedRecipe& recipe, const RankInfo& place,
                 const std::function<void(const Probe&, const RunInfo&)>& show);

}  // namespace tycho
