// The recipe with the changes made by commands. Torch-free.
#pragma once
#include "trainer/callbacks/command.h"
#include "trainer/config/train_config.h"

namespace tycho {

/// `recipe` with what `controls` says instead. Throws Error (kRecipe) for what the optimizer does not have,
/// and for a schedule that does not fit.
TrainConfig with_controls(const TrainConfig& recipe, const Controls& controls);

}  // namespace tycho
