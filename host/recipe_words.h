// Reads a recipe from the words of a command: its file, and the overrides.
#pragma once
#include "bindings/define/recipe.h"
#include "host/arguments.h"

namespace tycho {

/// Splits the words into the recipe's file, the first word that is not an override, and the overrides.
RecipeRequest recipe_words(const Arguments& arguments);
/// Same as recipe_words, but converts the file of another system to a recipe.
RecipeRequest recipe_request(const Arguments& arguments);

}  // namespace tycho
