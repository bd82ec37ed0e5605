// tycho types: stubs from which an editor knows every key.
#include <filesystem>

#include "bindings/define/recipe.h"
#include "bindings/run/objects_page.h"
#include "bindings/run/session_objects.h"
#include "host/signals.h"
#include "host/verb.h"
#include "trainer/base/file_ops.h"

namespace tycho {

const VerbSpec kTypesSpec = {
    "types [FOLDER] [RECIPE ...]",
    "Writes stubs for editors that use a Lua language server: types/tycho.lua and .luarc.json, with the "
    "components that "
    "recipes and modules define.",
    "  tycho types .\n"
    "  tycho types . recipes/demo.lua",
    {{"markdown", "Print the page of all objects of a run (docs/objects.md)."}, kJsonOption}};

int run_types(const Arguments& arguments) {
  if (arguments.has("markdown")) {
    no_more_words(arguments, 0);
    fmt::print("{}", objects_page(session_classes()));
    return 0;
  }
  std::vector<std::string> folders, recipes;
  for (const std::string& word : arguments.words)
    (word.ends_with(".lua") ? recipes : folders).push_back(word);
  if (folders.size() > 1)
    fail(ExitCode::kUsage, "[tycho types] did not expect \"{}\"; see --help", folders[1]);
  const std::filesystem::path folder = folders.empty() ? "." : folders[0];
  const InterruptLua interruptible;
  FileOps& files = real_files();
  Json written = Json::array(), kept = Json::array();
  for (const auto& [name, text] : make_stubs(describe(session_classes()), recipes)) {
    const std::filesystem::path path = folder / name;
    const bool is_settings = name.starts_with('.');  // users may have edited it
    if (is_settings && std::filesystem::exists(path)) {
      kept.push_back(path.string());
      continue;
    }
    make_dirs(files, path.parent_path().empty() ? "." : path.parent_path().string());
    write_file_atomically(files, path.string(), text);
    written.push_back(path.string());
  }
  if (arguments.has("json")) {
    fmt::print("{}\n", Json{{"written", written}, {"kept", kept}}.dump(2));
    return 0;
  }
  for (const Json& path : written) fmt::print("wrote {}\n", path.get<std::string>());
  for (const Json& path : kept) fmt::print("kept existing {}\n", path.get<std::string>());
  return 0;
}

}  // namespace tycho
