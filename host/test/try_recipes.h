// Checks and plans every recipe and sweep of some files, without starting one.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/json.h"

namespace tycho {

/// Returns true when a .lua appears, by its words, to make a recipe or a sweep.
bool makes_recipe(const std::string& text);

/// One file and its result.
struct TriedRecipe {
  std::string file;
  std::string
      state;         // "ok", "base" (for others to extend), "absent" (reads a file that is missing), "FAILED"
  std::string hash;  // of a recipe with state "ok"
  std::string said;  // one line; the whole report for a failed one
};

/// Resolves, checks and plans each file. Leaves out files that turn out to be no recipe, unless they are
/// `named` by a person. Throws only Error (kInterrupted).
std::vector<TriedRecipe> try_recipes(const std::vector<std::string>& files, bool named, bool trace);

}  // namespace tycho
