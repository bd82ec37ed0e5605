// From a command line to a sweep's folder: reads the file, makes trials of its points, and keeps recipes
// apart.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "bindings/define/recipe.h"
#include "bindings/define/sweep.h"
#include "trainer/sweep/definition.h"
#include "trainer/sweep/folder.h"

namespace tycho {

/// A sweep that has been read; nothing is written yet.
struct PreparedSweep {
  SweepDefinition definition;
  std::shared_ptr<SweepProgram> program;
};

struct SweepCommand {
  std::string file;  // a sweep's or a recipe's
  std::vector<PinArgument> arguments;
  std::string name;    // --name; "" for the sweep's own
  int64_t trials = 0;  // -n; 0 for the sweep's own
};

/// Returns the recipe that `tycho run` would resolve for a point. Throws Error that names the point.
ResolvedRecipe resolve_plan(const SweepDefinition& definition, const TrialPlan& trial);

/// Reads the sweep, and its recipe at the points where each value of a choice occurs first (at most 64), so
/// that problems are reported before anything starts. Throws Error (kRecipe) with the report, kUsage.
PreparedSweep prepare_sweep(const SweepCommand& command);

/// Reads the sweep of a folder again with further arguments, to extend or change it.
PreparedSweep prepare_again(const SweepFolder& folder, const std::vector<PinArgument>& more_arguments,
                            int64_t trials = 0);

/// Opens sweeps/NAME for the sweep and makes it the plan. When its recipe differs from the folder's, the
/// sweep is forked to sweeps/NAME-2, and standard error says what changed.
SweepFolder open_folder_for(PreparedSweep& sweep);

/// Throws Error (kRecipe) when the recipe's files differ from those of the definition.
void check_recipe_unchanged(const SweepDefinition& definition);

}  // namespace tycho
