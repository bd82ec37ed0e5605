// tycho test: runs Lua spec files, and checks and plans every recipe.
#include <algorithm>
#include <filesystem>
#include <set>

#include "bindings/import/imported.h"
#include "host/signals.h"
#include "host/test/fake_run.h"
#include "host/test/try_recipes.h"
#include "host/verb.h"
#include "trainer/base/file_ops.h"

namespace tycho {

const VerbSpec kTestSpec = {
    "test FILE_OR_FOLDER ...",
    "Checks and plans recipes and sweeps without starting them, and runs Lua specs (*_spec.lua).",
    "  tycho test recipes\n"
    "  tycho test tests/lua",
    {kJsonOption, kTraceOption}};

namespace {

namespace fs = std::filesystem;

struct FoundFiles {
  std::vector<std::string> specs, recipes;
  std::vector<std::string> named;  // recipes given as words of the command
};

bool is_spec(const std::string& file) { return file.ends_with("_spec.lua"); }

/// Adds the modules of plain Lua beside a spec that it requires.
void add_modules(const std::string& spec, std::set<fs::path>& modules) {
  const std::string text = read_file(spec);
  for (size_t at = text.find("require"); at != std::string::npos; at = text.find("require", at + 1)) {
    const size_t begin = text.find_first_of("\"'", at);
    if (begin == std::string::npos) return;
    const size_t end = text.find(text[begin], begin + 1);
    if (end == std::string::npos) return;
    modules.insert(fs::path(spec).parent_path() / (text.substr(begin + 1, end - begin - 1) + ".lua"));
  }
}

/// Finds specs and recipes below a folder.
void look_into(const std::string& folder, FoundFiles& found) {
  std::vector<std::string> sources;
  std::set<fs::path> modules;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string file = entry.path().string();
    if (!entry.is_regular_file() || !file.ends_with(".lua")) continue;
    if (is_spec(file)) add_modules(file, modules);
    (is_spec(file) ? found.specs : sources).push_back(file);
  }
  for (const std::string& file : sources)
    if (!modules.contains(fs::path(file)) && makes_recipe(read_file(file))) found.recipes.push_back(file);
}

FoundFiles find_files(const std::vector<std::string>& words) {
  FoundFiles found;
  for (const std::string& one : words) {
    if (!fs::exists(one)) fail(ExitCode::kUsage, "[tycho test] no file or folder {}", one);
    if (fs::is_directory(one)) {
      look_into(one, found);
    } else if (!is_spec(one) && (is_foreign_recipe(one) || makes_recipe(read_file(one)))) {
      found.named.push_back(one);
    } else {
      found.specs.push_back(one);
    }
  }
  std::sort(found.specs.begin(), found.specs.end());
  return found;
}

Json recipes_json(const std::vector<TriedRecipe>& tried) {
  Json list = Json::array();
  for (const TriedRecipe& one : tried) {
    list.push_back({{"file", one.file}, {"state", one.state}, {"said", one.said}});
    if (!one.hash.empty()) list.back()["hash"] = one.hash;
  }
  return list;
}

void print_recipes(const std::vector<TriedRecipe>& tried) {
  size_t width = 0;
  for (const TriedRecipe& one : tried) width = std::max(width, one.file.size());
  std::map<std::string, int> counts;
  for (const TriedRecipe& one : tried) {
    ++counts[one.state];
    if (one.state == "FAILED")
      fmt::print("{:<6}  {}\n{}\n", one.state, one.file, one.said);
    else
      fmt::print("{:<6}  {:<{}}  {}{}{}\n", one.state, one.file, width, one.hash,
                 one.hash.empty() ? "" : "  ", one.said);
  }
  std::string text =
      fmt::format("{} recipe{}: {} valid", tried.size(), tried.size() == 1 ? "" : "s", counts["ok"]);
  if (counts["base"] > 0) text += fmt::format(", {} to extend", counts["base"]);
  if (counts["absent"] > 0) text += fmt::format(", {} with missing files", counts["absent"]);
  fmt::print("{}, {} invalid\n", text, counts["FAILED"]);
}

}  // namespace

int run_test(const Arguments& arguments) {
  word(arguments, 0, "recipes, specs, or folders of them");
  const FoundFiles found = find_files(arguments.words);
  if (found.specs.empty() && found.recipes.empty() && found.named.empty())
    fail(ExitCode::kUsage, "[tycho test] no recipe and no *_spec.lua found");
  const bool trace = arguments.has("trace"), json = arguments.has("json");
  const InterruptLua interruptible;
  SpecResult specs;
  if (!found.specs.empty()) specs = run_specs(found.specs, trace, open_fake_runs);
  std::vector<TriedRecipe> tried = try_recipes(found.recipes, /*named=*/false, trace);
  for (TriedRecipe& one : try_recipes(found.named, /*named=*/true, trace)) tried.push_back(std::move(one));
  if (json) {
    Json shown = {{"passed", specs.passed}, {"failed", specs.failed}, {"failures", specs.failures}};
    if (!tried.empty()) shown["recipes"] = recipes_json(tried);
    fmt::print("{}\n", shown.dump());
  } else {
    if (!found.specs.empty()) fmt::print("{} passed, {} failed\n", specs.passed, specs.failed);
    if (!tried.empty()) print_recipes(tried);
  }
  const bool wrong =
      std::any_of(tried.begin(), tried.end(), [](const auto& one) { return one.state == "FAILED"; });
  return static_cast<int>(specs.failed == 0 && !wrong ? ExitCode::kOk : ExitCode::kFailure);
}

}  // namespace tycho
