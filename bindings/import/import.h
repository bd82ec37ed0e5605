// Config files of other systems as recipes: LLM Foundry's YAML, TorchTitan's TOML, Nanotron's YAML, Hugging
// Face's config.json.
#pragma once
#include <string>
#include <vector>

#include "bindings/define/recipe.h"
#include "bindings/import/imported.h"

namespace tycho {

/// Returns true for the text of a YAML that is a sweep of Weights & Biases.
bool is_foreign_sweep(const std::string& file, const std::string& text);

/// Makes a recipe from a file's text, or a sweep from that of a sweep. The ending of `file` decides the
/// syntax, and messages show its name. Arguments whose keys belong to the other system (variables.x=1) are
/// applied to the text first. Throws Error: kUnusable for text that cannot be parsed, kRecipe with a list of
/// every key that Tycho cannot honour.
Imported import_recipe(const std::string& file, const std::string& text,
                       const std::vector<PinArgument>& pins = {});

/// Throws Error (kUsage) for a Python file, and explains how to save its config as text.
void refuse_program(const std::string& file);

/// Prints one line on stderr.
void print_note(const std::string& file, const std::string& note);

/// Replaces a foreign file of a request by the recipe made from it, read from request.files or the disk.
/// Prints notes to stderr. Throws Error (kUsage) for a .py or .json that is no config.
void import_request(RecipeRequest& request);

}  // namespace tycho
