// tycho diff: which keys differ between two recipes or runs, and who set them.
#include <filesystem>

#include "bindings/import/import.h"
#include "host/signals.h"
#include "host/text_table.h"
#include "host/verb.h"
#include "trainer/base/file_ops.h"
#include "trainer/config_io.h"
#include "trainer/run_record.h"

namespace tycho {

const VerbSpec kDiffSpec = {
    "diff A B",
    "Shows the keys that differ between two recipes, run folders or resolved JSON files, and who set them. "
    "Exit status 0: "
    "none, 1: some.",
    "  tycho diff recipes/demo.lua recipes/llama-tiny.lua\n"
    "  tycho diff runs/demo runs/demo-2 --json",
    {kJsonOption, kTraceOption}};

namespace {

/// A config and who set what, if that is known.
struct Side {
  Json tree;
  Json history = Json::object();
};

/// recipe.json of a run folder, or what `tycho check --json` prints.
Side read_json_side(const std::string& file) {
  Side side = {parse_json(read_file(file), file)};
  if (side.tree.contains("config")) side.tree = Json(side.tree["config"]);
  if (!side.tree.is_object() || !side.tree.contains("model")) {
    fail(
        ExitCode::kUnusable,
        "[tycho diff] {} is no resolved recipe; `tycho check RECIPE --json` writes one, and run folders hold "
        "recipe.json",
        file);
  }
  return side;
}

Side read_side(const std::string& name, bool trace) {
  if (std::filesystem::is_directory(name)) {
    const RunRecord record = read_run_record(name);
    return {record.config, record.provenance};
  }
  if (name.ends_with(".json")) return read_json_side(name);
  const InterruptLua interruptible;
  RecipeRequest request = {.file = name, .trace = trace};
  import_request(request);
  const ResolvedRecipe recipe = resolve_recipe(request);
  return {recipe.tree, recipe.history};
}

/// Where the value of a path comes from: its own history, or its nearest parent's.
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

Json difference_json(const ConfigDifference& one, const Side& a, const Side& b) {
  const auto side_json = [&](const std::string& value, const Side& side) {
    if (value.empty()) return Json(nullptr);
    Json shown = {{"value", Json::parse(value)}};
    const std::string by = set_by(side, one.path);
    if (!by.empty()) shown["set_by"] = by;
    return shown;
  };
  return {{"key", one.path}, {"a", side_json(one.old_value, a)}, {"b", side_json(one.new_value, b)}};
}

std::string difference_table(const std::vector<ConfigDifference>& found, const Arguments& arguments,
                             const Side& a, const Side& b) {
  std::vector<std::vector<std::string>> rows = {{"key", arguments.words[0], "", arguments.words[1], ""}};
  const auto cell = [](const std::string& value) { return value.empty() ? "(no such key)" : value; };
  for (const ConfigDifference& one : found) {
    rows.push_back({one.path, cell(one.old_value), one.old_value.empty() ? "" : set_by(a, one.path),
                    cell(one.new_value), one.new_value.empty() ? "" : set_by(b, one.path)});
  }
  return text_table(rows);
}

}  // namespace

int run_diff(const Arguments& arguments) {
  const bool trace = arguments.has("trace");
  const Side a = read_side(word(arguments, 0, "two recipes or runs"), trace);
  const Side b = read_side(word(arguments, 1, "a second recipe or run"), trace);
  no_more_words(arguments, 2);
  const std::vector<ConfigDifference> found = diff_configs(a.tree, b.tree);
  if (arguments.has("json")) {
    Json list = Json::array();
    for (const ConfigDifference& one : found) list.push_back(difference_json(one, a, b));
    fmt::print("{}\n", list.dump(2));
  } else if (!found.empty()) {
    fmt::print("{}", difference_table(found, arguments, a, b));
  }
  return found.empty() ? 0 : 1;
}

}  // namespace tycho
