// tycho diff: which keys differ between two recipes or runs, and who set them.
#include <filesystem>

#include "bindings/import/import.h"
#include "host/signals.h"
#include "host/text_table.h"
#include "host/verb.h"
#include "trainer/base/file_ops.h"
#include "trainer/recipe/config_io.h"
#include "trainer/run_folder/run_record.h"

namespace tycho {

const VerbSpec kDiffSpec = {
    "diff A B [key=value ...]",
    "Shows the keys that differ between two recipes, run folders or resolved JSON files, and who set them; "
    "key=value arguments apply to the recipes among them. Exit status 0: no difference, 1: some.",
    "  tycho diff recipes/demo.lua recipes/llama-tiny.lua\n"
    "  tycho diff runs/demo recipes/demo.lua optimizer.lr=1e-3\n"
    "  tycho diff runs/demo runs/demo-2 --json",
    {kJsonOption, kTraceOption}};

namespace {

/// A config, and the history of its keys if known.
struct Side {
  Json tree;
  Json history = Json::object();
};

/// Reads recipe.json of a run folder, or the output of `tycho check --json`.
Side read_json_side(const std::string& file) {
  Side side = {parse_json(read_file(file), file)};
  if (side.tree.contains("config")) side.tree = Json(side.tree["config"]);
  if (!side.tree.is_object() || !side.tree.contains("model")) {
    fail(ExitCode::kUnusable,
         "[tycho diff] {} is not a resolved recipe; `tycho check RECIPE --json` writes one, and run folders "
         "hold recipe.json",
         file);
  }
  return side;
}

bool is_recipe(const std::string& name) {
  return !std::filesystem::is_directory(name) && !name.ends_with(".json");
}

Side read_side(RecipeRequest request) {
  const std::string name = request.file;
  if (std::filesystem::is_directory(name)) {
    const RunRecord record = read_run_record(name);
    return {record.config, record.provenance};
  }
  if (!is_recipe(name)) return read_json_side(name);
  const InterruptLua interruptible;
  import_request(request);
  const ResolvedRecipe recipe = resolve_recipe(request);
  return {recipe.tree, recipe.history};
}

/// Returns where the value of a path was set, from its own history or its nearest parent's.
std::string set_by(const Side& side, std::string path) {
  for (; !path.empty(); path.erase(path.rfind('.') == std::string::npos ? 0 : path.rfind('.'))) {
    const auto found = side.history.find(path);
    if (found == side.history.end()) continue;
    for (auto entry = found->rbegin(); entry != found->rend(); ++entry) {
      if (entry->contains("shadowed")) continue;
      return entry->at("by") == "default" ? "default" : entry->value("at", std::string());
    }
  }
  return "";
}

/// Returns the value of a path. Names of open tables may contain dots.
Json value_at(const Json& tree, const std::string& path) {
  if (!tree.is_object()) return nullptr;
  if (const auto found = tree.find(path); found != tree.end()) return *found;
  for (const auto& [key, value] : tree.items()) {
    if (!path.starts_with(key + ".")) continue;
    if (const Json found = value_at(value, path.substr(key.size() + 1)); !found.is_null()) return found;
  }
  return nullptr;
}

Json difference_json(const ConfigDifference& one, const Side& a, const Side& b) {
  const auto side_json = [&](const std::string& text, const Side& side) {
    if (text.empty()) return Json(nullptr);
    Json shown = {{"value", value_at(side.tree, one.path)}};
    const std::string by = set_by(side, one.path);
    if (!by.empty()) shown["set_by"] = by;
    return shown;
  };
  return {{"key", one.path}, {"a", side_json(one.old_value, a)}, {"b", side_json(one.new_value, b)}};
}

std::string difference_table(const std::vector<ConfigDifference>& found,
                             const std::vector<std::string>& names, const Side& a, const Side& b) {
  std::vector<std::vector<std::string>> rows = {{"key", names[0], "", names[1], ""}};
  const auto cell = [](const std::string& value) { return value.empty() ? "(no such key)" : value; };
  for (const ConfigDifference& one : found) {
    rows.push_back({one.path, cell(one.old_value), one.old_value.empty() ? "" : set_by(a, one.path),
                    cell(one.new_value), one.new_value.empty() ? "" : set_by(b, one.path)});
  }
  return text_table(rows);
}

/// Returns the two names, and adds the overrides among the words to `pins`.
std::vector<std::string> read_names(const Arguments& arguments, std::vector<PinArgument>& pins) {
  std::vector<std::string> names;
  for (size_t i = 0; i < arguments.words.size(); ++i) {
    const std::string& one = arguments.words[i];
    if (is_override(one)) {
      pins.push_back({arguments.numbers[i], one});
    } else if (names.push_back(one); names.size() > 2) {
      fail(ExitCode::kUsage, "[tycho diff] did not expect \"{}\"; see --help", one);
    }
  }
  if (names.size() < 2)
    fail(ExitCode::kUsage, "[tycho diff] expected two recipes or runs, got {}; see --help", names.size());
  if (!pins.empty() && !is_recipe(names[0]) && !is_recipe(names[1])) {
    fail(ExitCode::kUsage, "[tycho diff] {} applies to recipes, and neither {} nor {} is one", pins[0].text,
         names[0], names[1]);
  }
  return names;
}

}  // namespace

int run_diff(const Arguments& arguments) {
  RecipeRequest request;
  request.trace = arguments.has("trace");
  const std::vector<std::string> names = read_names(arguments, request.pins);
  request.file = names[0];
  const Side a = read_side(request);
  request.file = names[1];
  const Side b = read_side(request);
  const std::vector<ConfigDifference> found = diff_configs(a.tree, b.tree);
  if (arguments.has("json")) {
    Json list = Json::array();
    for (const ConfigDifference& one : found) list.push_back(difference_json(one, a, b));
    fmt::print("{}\n", list.dump(2));
  } else if (!found.empty()) {
    fmt::print("{}", difference_table(found, names, a, b));
  }
  return found.empty() ? 0 : 1;
}

}  // namespace tycho
