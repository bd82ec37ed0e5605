// Writes best.lua and checks that it resolves to the trial's own config.
#include "host/sweep/best.h"

#include <filesystem>

#include "bindings/define/recipe.h"
#include "bindings/import/import.h"
#include "bindings/import/lua_writer.h"
#include "host/sweep/slot.h"
#include "trainer/base/error.h"
#include "trainer/base/text/shell_words.h"
#include "trainer/recipe/config_io.h"
#include "trainer/sweep/search.h"

namespace tycho {
namespace {

ResolvedRecipe resolve(const std::string& file, const std::vector<std::string>& pins,
                       const std::map<std::string, std::string>& files = {}) {
  RecipeRequest request;
  request.file = file;
  request.files = files;
  for (const std::string& pin : pins) request.pins.push_back({0, pin});
  import_request(request);
  return resolve_recipe(request);
}

/// Returns the recipe's own value of a key: the newest entry that is not from an argument.
std::string recipe_value(const Json& history, const std::string& key) {
  std::string value;
  if (!history.contains(key)) return value;
  for (const Json& entry : history.at(key))
    if (entry.at("by") != "argument")
      value = entry.at("value").is_string() ? entry.at("value").get<std::string>() : entry.at("value").dump();
  const bool quoted = value.size() > 1 && value.front() == '"' && value.back() == '"';
  return quoted ? value.substr(1, value.size() - 2) : value;
}

/// Returns a value of the tree as Lua; numbers, booleans and strings are written as in JSON.
std::string lua_value(const Json& value) {
  if (value.is_null()) return "t.null";
  if (!value.is_array()) return value.dump();
  std::string text = "{ ";
  for (const Json& item : value) text += (text.size() > 2 ? ", " : "") + lua_value(item);
  return text + " }";
}

const Json* find_path(const Json& tree, const std::string& path) {
  const Json* at = &tree;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string key = path.substr(begin, end - begin);
    if (!at->is_object() || !at->contains(key)) return nullptr;
    at = &at->at(key);
    begin = end + 1;
  }
  return at;
}

/// Returns a recipe that extends the sweep's; "" when a key cannot be written that way.
std::string extension(const SweepDefinition& definition, const ResolvedRecipe& trial,
                      const std::vector<ChangedKey>& changes, const std::string& head) {
  if (!definition.recipe.ends_with(".lua")) return "";
  std::string text = fmt::format("local r = require {} :extend {}\n\n",
                                 Json(definition.recipe.substr(0, definition.recipe.size() - 4)).dump(),
                                 Json(definition.name + "-best").dump());
  bool has_null = false;
  for (const ChangedKey& change : changes) {
    const Json* value = find_path(trial.tree, change.key);
    if (value == nullptr || value->is_object()) return "";
    text += fmt::format("{} = {}\n", lua_path("r", change.key), lua_value(*value));
    has_null |= value->is_null();
  }
  return head + (has_null ? "local t = require \"tycho\"\n" : "") + text + "return r\n";
}

bool gives(const std::string& text, const std::string& hash) {
  try {
    return resolve("best.lua", {}, {{"best.lua", text}}).hash == hash;
  } catch (const Error&) {
    return false;  // it reads what only the sweep sets
  }
}

}  // namespace

BestTrial best_trial(const SweepFolder& folder) {
  const std::vector<const Trial*> ranked = ranking(folder.board());
  const SweepDefinition& definition = folder.board().definition();
  if (ranked.empty())
    fail(ExitCode::kUsage, "[sweep best] no trial of {} has {} yet; `tycho sweep table {}` shows them",
         definition.name, definition.config.metric.name, definition.name);
  std::filesystem::current_path(definition.folder);
  BestTrial best{.trial = ranked[0]};
  const std::vector<std::string> pins = trial_pins(definition, *best.trial);
  const ResolvedRecipe resolved = resolve(definition.recipe, pins);
  for (const std::string& pin : pins) {
    const std::string key = pin.substr(0, pin.find('='));
    best.changes.push_back({key, recipe_value(resolved.history, key), pin.substr(pin.find('=') + 1)});
  }
  std::vector<std::string> words = {"tycho", "run", definition.recipe};
  words.insert(words.end(), pins.begin(), pins.end());
  best.command = shell_line(words);
  const std::string head =
      fmt::format("-- The best of sweep {}: trial {} ({}), {} = {:.6g} at step {}.\n", definition.name,
                  best.trial->number, best.trial->plan.id, definition.config.metric.name,
                  *best.trial->last.value, best.trial->last.step);
  best.lua = extension(definition, resolved, best.changes, head);
  best.extends = !best.lua.empty() && gives(best.lua, resolved.hash);
  if (!best.extends) best.lua = head + resolved.lua;
  return best;
}

}  // namespace tycho
