// The best trial of a sweep: its changes, the command to run it again, and a recipe.
#pragma once
#include <string>
#include <vector>

#include "trainer/sweep/board.h"
#include "trainer/sweep/folder.h"

namespace tycho {

/// A key whose value in the trial differs from the recipe's.
struct ChangedKey {
  std::string key;
  std::string recipe_value;  // "" where the recipe does not set it
  std::string trial_value;
};

struct BestTrial {
  const Trial* trial = nullptr;
  std::vector<ChangedKey> changes;
  std::string command;   // `tycho run ...`
  std::string lua;       // best.lua
  bool extends = false;  // best.lua extends the recipe; otherwise it sets every key
};

/// Throws Error (kUsage) when no trial has a value yet. best.lua gives the trial's own config, which is
/// checked: when an extension of the recipe would give another one (values computed from keys that the sweep
/// varies), it sets every key instead.
BestTrial best_trial(const SweepFolder& folder);

}  // namespace tycho
