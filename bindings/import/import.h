// Config files of other systems as recipes: LLM Foundry's YAML, TorchTitan's TOML, Nanotron's YAML, Hugging
// Face's config.json.
#pragma once
#include <string>
#include <vector>

#include "bindings/define/recipe.h"
#include "bindings/define/source_file.h"

namespace tycho {

/// True for the names of files that must be imported before they can run: .yaml, .yml and .toml.
bool is_foreign_recipe(const std::string& file);

/// A name for what is made of this file, of letters, digits, '.', '_' and '-'.
std::string name_of_file(const std::string& file);

/// True for the text of a YAML that is a sweep of Weights & Biases.
bool is_foreign_sweep(const std::string& file, const std::string& text);

struct Imported {
  std::string lua;
  std::vector<std::string> notes;   // "line 12  key: text": what a person should know
  std::vector<PinArgument> pins;    // those that are not keys of the file
  std::vector<SourcePlace> places;  // what each line of lua was made of
};

/// Makes a recipe of a file's text, or a sweep of that of a sweep; `file` says its syntax by its ending, and
/// is what messages call it. Arguments whose keys the other system has (variables.x=1) are applied to the
/// text first. Throws Error: kUnusable for text that cannot be parsed, kRecipe with a list of every key that
/// Tycho cannot honour.
Imported import_recipe(const std::string& file, const std::string& text,
                       const std::vector<PinArgument>& pins = {});

/// Throws Error (kUsage) for a Python file, with how its config becomes one of text.
void refuse_program(const std::string& file);

/// One line on stderr.
void print_note(const std::string& file, const std::string& note);

/// Replaces a foreign file of a request by the recipe made from it, read from request.files or the disk.
/// Notes go to stderr. Throws Error (kUsage) for a .py or .json, which is none.
void import_request(RecipeRequest& request);

}  // namespace tycho
