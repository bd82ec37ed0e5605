// A few real steps of a recipe, whose results are discarded.
#pragma once
#include <functional>

#include "bindings/define/recipe.h"
#include "trainer/metrics/step_metrics.h"
#include "trainer/rendezvous/rank_place.h"
#include "trainer/session/probe.h"

namespace tycho {

/// Trains three steps of a recipe on its own data, in a folder for temporary files that is gone afterwards:
/// without its callbacks, checkpoints and profiles. Collective over the ranks of `place`; rank 0 calls
/// `show`. Returns the exit code: 0, or 128 + signal when one ended it, which it does at once. Throws Error.
int probe_recipe(const ResolvedRecipe& recipe, const RankPlace& place,
                 const std::function<void(const Probe&, const RunInfo&)>& show);

}  // namespace tycho
