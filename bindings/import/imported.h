// Recipes made from files of other systems.
#pragma once
#include <string>
#include <vector>

#include "bindings/define/recipe.h"
#include "bindings/define/source_file.h"

namespace tycho {

/// Returns true for the names of files that must be imported before they can run: .yaml, .yml and .toml.
bool is_foreign_recipe(const std::string& file);

/// Returns a name for the recipe made from this file, of letters, digits, '.', '_' and '-'.
std::string name_of_file(const std::string& file);

struct Imported {
  std::string lua;
  std::vector<std::string> notes;      // "line 12  key: text": notes for the user
  std::vector<PinArgument> pins;       // pins whose keys are not the file's
  std::vector<SourceLocation> places;  // origin of each line of lua
};

}  // namespace tycho
