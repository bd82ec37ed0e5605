// The first word that is not an override is the file.
#include "host/recipe_words.h"

#include <filesystem>

#include "bindings/import/import.h"
#include "host/verb_help.h"
#include "trainer/base/error.h"

namespace tycho {

RecipeRequest recipe_words(const Arguments& arguments) {
  RecipeRequest request;
  request.trace = arguments.has("trace");
  for (size_t i = 0; i < arguments.words.size(); ++i) {
    if (request.file.empty() && !is_override(arguments.words[i])) {
      request.file = arguments.words[i];
    } else {
      request.pins.push_back({arguments.numbers[i], arguments.words[i]});
    }
  }
  if (request.file.empty())
    fail(ExitCode::kUsage, "[tycho {}] expected a recipe, {}", arguments.verb,
         example_of_verb(arguments.verb, arguments.words));
  if (std::filesystem::path(request.file).filename() == "recipe.json")
    fail(ExitCode::kRecipe,
         "[tycho {}] {} records what a run resolved, in JSON; the recipe is a file in Lua beside it: {}lua",
         arguments.verb, request.file, request.file.substr(0, request.file.size() - 4));
  return request;
}

RecipeRequest recipe_request(const Arguments& arguments) {
  RecipeRequest request = recipe_words(arguments);
  import_request(request);
  return request;
}

}  // namespace tycho
