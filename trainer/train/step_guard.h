// Keeps steps whose numbers are wrong from the weights: what `guard` of a recipe says. Torch-free.
#pragma once
#include <string>

#include "trainer/recipe/train_config.h"
#include "trainer/state/train_state.h"

namespace tycho {

/// Returns what is wrong with the step that follows `state`, or "" for one that may update the weights.
/// Counts skipped steps in the state. Throws Error (kNumerics) when training is to stop, which names the
/// functions of the recipe that may have made a NaN. A pure function of its arguments, so that all ranks
/// decide alike.
std::string wrong_with_step(const TrainConfig& recipe, TrainState& state, double loss, double grad_norm);

}  // namespace tycho
