// Checks and plans every recipe and sweep of some files, without starting one.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/json.h"

namespace tycho {

/// Whether the text of a .lua makes a recipe or a sweep, as far as its words tell.
bool makes_recipe(const std::string& text);

/// One file, and what became of it.
struct TriedRecipe {
  std::string file;
  std::string state;  // "ok", "base" (for others to extend), "absent" (reads what is not here), "FAILED"
  std::string hash;   // of a recipe that is ok
  std::string said;   // one line; the whole report of one that failed
};

/// Resolves, checks and plans each. Files that turn out to be no recipe are left out unless `named`, as a
/// person would have named them. Throws Error (kInterrupted) alone.
std::vector<TriedRecipe> try_recipes(const std::vector<std::string>& files, bool named, bool trace);

}  // namespace tycho
