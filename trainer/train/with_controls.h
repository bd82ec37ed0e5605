// The recipe with the changes made by commands. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/callbacks/command.h"
#include "trainer/recipe/config_io.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Returns `recipe` with the values of `controls`. Throws Error (kRecipe) for settings that the optimizer
/// does not have or cannot take, and for a schedule that does not fit.
TrainConfig with_controls(const TrainConfig& recipe, const Controls& controls);

/// A command of an earlier start, when a new start resumes from its checkpoint.
struct HeldCommand {
  std::string name;      // "set_lr"
  bool holds = true;     // false: it has ended, because this start asks for another value
  std::string note;      // for display
  std::string key = {};  // "optimizer.beta", of a command for a key of the optimizer
};

/// Ends the commands in `controls` whose keys differ between `recipe` and `before`, the recipe of the
/// checkpoint, because the newest request counts. Returns for each command whether it holds. `stage` is the
/// data stage that set_mix applies to.
std::vector<HeldCommand> end_changed_commands(Controls& controls,
                                              const std::vector<ConfigDifference>& changes,
                                              const Json& recipe, int64_t stage);

}  // namespace tycho
