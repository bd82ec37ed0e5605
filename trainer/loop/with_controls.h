// The recipe with the changes made by commands. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/callbacks/command.h"
#include "trainer/config/config_io.h"
#include "trainer/config/train_config.h"

namespace tycho {

/// `recipe` with what `controls` says instead. Throws Error (kRecipe) for what the optimizer does not have,
/// and for a schedule that does not fit.
TrainConfig with_controls(const TrainConfig& recipe, const Controls& controls);

/// A command of an earlier start, at a start that goes on from its checkpoint.
struct HeldCommand {
  std::string name;   // "set_lr"
  bool holds = true;  // false: it has ended, since this start asks for something else
  std::string note;   // for people
};

/// Ends the commands in `controls` whose keys have another value in `recipe` than in `before`, the recipe of
/// the checkpoint: what is asked for now is what counts. Says of each command whether it holds. `stage`: of
/// the data, which set_mix is about.
std::vector<HeldCommand> end_changed_commands(Controls& controls,
                                              const std::vector<ConfigDifference>& changes,
                                              const Json& recipe, int64_t stage);

}  // namespace tycho
