// tycho import: a config file of another system as a recipe.
#include "bindings/import/import.h"

#include <filesystem>

#include "bindings/define/source_file.h"
#include "host/recipe_words.h"
#include "host/standard_streams.h"
#include "host/verb.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/regular_file.h"

namespace tycho {

const VerbSpec kImportSpec = {
    "import FILE [key=value ...]",
    "Converts an LLM Foundry or Nanotron YAML, a TorchTitan TOML or JSON or a Hugging Face config.json to a "
    "recipe. "
    "Comments are kept; a key that Tycho cannot honour is an error.",
    "  tycho import mpt-125m.yaml -o mpt-125m.lua\n"
    "  tycho import mpt-125m.yaml variables.data_local=/data/c4 | less",
    {{"o,out", "Write the recipe here instead of printing it; FILE must not exist yet.", "FILE"}}};

int run_import(const Arguments& arguments) {
  const RecipeRequest request = recipe_words(arguments);
  const SourceFile file = read_source(request.file);
  if (!file.text) fail(ExitCode::kUsage, "[tycho import] {}", file.message);
  refuse_program(request.file);
  if (!is_foreign_recipe(request.file) && !request.file.ends_with(".json"))
    fail(ExitCode::kUsage, "[tycho import] expected a .yaml, .yml, .toml or .json, got {}", request.file);
  const Imported made = import_recipe(request.file, *file.text, request.pins);
  if (!made.pins.empty()) {
    fail(ExitCode::kUsage, "[tycho import] {} has no key for {}; pass Tycho's own keys to tycho run",
         request.file, made.pins[0].text);
  }
  for (const std::string& note : made.notes) print_note(request.file, note);
  if (!arguments.has("out")) {
    print_exact_text();
    fmt::print("{}", made.lua);
    return 0;
  }
  const std::string& out = arguments.text("out");
  if (std::filesystem::exists(out) && !is_stream(out))
    fail(ExitCode::kUsage, "[tycho import] {} already exists and is not overwritten", out);
  write_typed_file(real_files(), out, made.lua);
  if (!is_stream(out)) fmt::print("wrote {}; next: tycho check {}\n", out, out);
  return 0;
}

}  // namespace tycho
