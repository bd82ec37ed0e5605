// Turns `tycho rerun` into the `tycho run` that it stands for.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bindings/define/recipe.h"
#include "host/arguments.h"

namespace tycho {

/// A `tycho run` whose recipe is read only from the sources that a run folder keeps.
struct RerunRequest {
  std::string folder;                          // folder of the run that is started again
  std::vector<std::string> argv;               // arguments of `tycho run`
  std::map<std::string, std::string> sources;  // texts by file name
  bool trace = false;                          // shows where in Lua an error was raised
  bool may_choose_folder = false;              // false for several ranks: they must agree on a name

  /// Returns the request for the recipe with the arguments in argv.
  RecipeRequest recipe_request() const;
};

/// Reads the run folder that the arguments of `tycho rerun` name, and restores the environment variables that
/// its recipe read. Throws Error: kUnusable for a folder that holds no run, kUsage for other words than
/// overrides and for several ranks without the name of a folder.
RerunRequest rerun_request(const Arguments& arguments, int64_t num_ranks);

}  // namespace tycho
