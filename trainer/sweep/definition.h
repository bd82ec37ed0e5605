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
  std::string id;                             // of pins and recipe: the same trial never runs twice
  std::vector<std::string> pins;              // "optimizer.lr=0.0012", sorted
  std::map<std::string, std::string> values;  // recipe key to value, without the seed of a repetition
};

/// Never changed once written: extending a sweep or changing its rules makes a new one.
struct SweepDefinition {
  std::string name;
  std::string folder;                  // where it was started: trials run there
  std::string file;                    // what the host loads again: a sweep's file, or a recipe
  std::vector<std::string> arguments;  // and with what
  bool of_recipe = false;              // `file` is a recipe and the space stands in the arguments
  std::string recipe;                  // file of the recipe
  std::map<std::string, std::string> recipe_sources;  // file -> hash of its text
  std::map<std::string, std::string> sources;         // text of every file that the sweep was read from
  Json tree;                                          // of config
  SweepConfig config;
  std::vector<TrialPlan> trials;
};

/// Hash of what decides the numbers of every trial beside its own pins: the recipe's texts and the common
/// pins.
std::string recipe_identity_hash(const std::map<std::string, std::string>& recipe_sources,
                                 const std::map<std::string, std::string>& pins);
/// 8 hex digits from sorted pins and recipe_identity_hash.
std::string trial_id(std::vector<std::string> pins, const std::string& recipe_hash);

/// Hash of the whole definition: its file name.
std::string definition_hash(const SweepDefinition& definition);
/// Writes <sweep_dir>/definitions/<hash>.json unless it is there, and returns the hash.
std::string write_definition(FileOps& files, const std::string& sweep_dir, const SweepDefinition& definition);
/// Throws Error (kUnusable) for a file that cannot be read or is not a definition.
SweepDefinition read_definition(const std::string& sweep_dir, const std::string& hash);

/// What changed between two recipes of one sweep, file by file; "" when nothing did.
std::string recipe_changes(const std::map<std::string, std::string>& before,
                           const std::map<std::string, std::string>& now);

/// "recipes/x.lua:optimizer.lr=0.1" for people: pins with spaces between them.
std::string pins_text(const std::vector<std::string>& pins);

}  // namespace tycho
