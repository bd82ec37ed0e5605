// A sweep as requested: its config and every trial of the plan, kept next to the ledger. Torch-free.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/sweep/config.h"

namespace tycho {

/// One point of the space.
struct TrialPlan {
  std::string id;                 // hash of pins and recipe, so that the same trial never runs twice
  std::vector<std::string> pins;  // "optimizer.lr=0.0012", sorted
  std::map<std::string, std::string> values;  // recipe key to value, without the seed of a repetition
};

/// Immutable once written: extending a sweep or changing its rules makes a new definition.
struct SweepDefinition {
  std::string name;
  std::string folder;                  // working directory of the start, in which trials run
  std::string file;                    // file that the host loads again: a sweep's, or a recipe
  std::vector<std::string> arguments;  // arguments for loading it
  bool of_recipe = false;              // `file` is a recipe, and the arguments contain the space
  std::string recipe;                  // file of the recipe
  std::map<std::string, std::string> recipe_sources;  // file -> hash of its text
  std::map<std::string, std::string> sources;         // texts of all files of the sweep
  Json tree;                                          // tree of the config
  SweepConfig config;
  std::vector<TrialPlan> trials;
};

/// Returns the hash of what decides the numbers of every trial apart from its own pins: the recipe's texts
/// and the common pins.
std::string recipe_identity_hash(const std::map<std::string, std::string>& recipe_sources,
                                 const std::map<std::string, std::string>& pins);
/// Returns 8 hex digits from sorted pins and recipe_identity_hash.
std::string trial_id(std::vector<std::string> pins, const std::string& recipe_hash);

/// Returns the hash of the whole definition, which is its file name.
std::string definition_hash(const SweepDefinition& definition);
/// Writes <sweep_dir>/definitions/<hash>.json unless it is there, and returns the hash.
std::string write_definition(FileOps& files, const std::string& sweep_dir, const SweepDefinition& definition);
/// Throws Error (kUnusable) for a file that cannot be read or is not a definition.
SweepDefinition read_definition(const std::string& sweep_dir, const std::string& hash);

/// Returns what changed between two recipes of one sweep, file by file; "" when nothing did.
std::string recipe_changes(const std::map<std::string, std::string>& before,
                           const std::map<std::string, std::string>& now);

/// Returns pins for display, separated by spaces: "recipes/x.lua:optimizer.lr=0.1".
std::string pins_text(const std::vector<std::string>& pins);

}  // namespace tycho
