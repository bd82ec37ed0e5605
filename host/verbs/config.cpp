// tycho config: every key, its value and where it comes from.
#include "bindings/import/import.h"
#include "host/signals.h"
#include "host/standard_streams.h"
#include "host/verb.h"
#include "trainer/hub/hub_files.h"
#include "trainer/recipe/config_io.h"

namespace tycho {

const VerbSpec kConfigSpec = {
    "config [RECIPE] [path] [key=value ...]",
    "Shows every key: value, default, help, and who set it. Without a recipe: the schema.",
    "  tycho config recipes/demo.lua optimizer\n"
    "  tycho config recipes/demo.lua optimizer.lr=1e-3 --why optimizer.lr\n"
    "  tycho config recipes/demo.lua 'optimizer.lr*=0.5' --changed",
    {{"why", "Show who set KEY to which values, newest last.", "KEY"},
     {"changed", "Show only values that are not defaults."},
     {"resolved", "Print the resolved recipe as recipe.json of a run has it; `tycho schema` describes it."},
     {"hash", "Print only the hashes of the run, of every source, and of every folder of a module."},
     {"markdown", "Print the page of all keys (docs/keys.md), with the kinds that the recipes define."},
     kJsonOption,
     kTraceOption}};

namespace {

/// Returns the hashes of the folders of modules, from the provenance.
Json module_hashes(const ResolvedRecipe& recipe) {
  constexpr std::string_view kKey = "module.";
  Json modules = Json::object();
  for (const auto& [key, history] : recipe.history.items())
    if (key.starts_with(kKey)) modules[key.substr(kKey.size())] = history.at(0).at("value");
  return modules;
}

int print_identity(const ResolvedRecipe& recipe, bool json) {
  Json identity = recipe_identity(recipe);
  identity["modules"] = module_hashes(recipe);
  if (json) {
    fmt::print("{}\n", identity.dump(2));
    return 0;
  }
  fmt::print("{}  {}\n", recipe.hash, recipe.name);
  for (const auto& [file, hash] : identity.at("sources").items())
    fmt::print("{}  {}\n", hash.get<std::string>(), file);
  for (const auto& [folder, hash] : identity.at("modules").items())
    fmt::print("{}  {}/\n", hash.get<std::string>(), folder);
  return 0;
}

}  // namespace

int run_config(const Arguments& arguments) {
  set_hub_access(HubAccess::kCacheOnly);
  if (arguments.has("markdown")) {
    const InterruptLua interruptible;
    fmt::print("{}", keys_page(arguments.words));
    return 0;
  }
  ConfigQuery query;
  query.recipe.trace = arguments.has("trace");
  query.changed = arguments.has("changed");
  if (arguments.has("why")) query.why = arguments.text("why");
  for (size_t i = 0; i < arguments.words.size(); ++i) {
    const std::string& one = arguments.words[i];
    if (is_override(one)) {
      query.recipe.pins.push_back({arguments.numbers[i], one});
    } else if (query.recipe.file.empty() &&
               (one.ends_with(".lua") || is_foreign_recipe(one) || one.find('/') != std::string::npos)) {
      query.recipe.file = one;
    } else if (query.under.empty()) {
      query.under = one;
    } else {
      fail(ExitCode::kUsage, "[tycho config] did not expect \"{}\"; see --help", one);
    }
  }
  const bool hash = arguments.has("hash"), resolved = arguments.has("resolved");
  if (query.recipe.file.empty() && (hash || resolved || !query.why.empty() || !query.recipe.pins.empty())) {
    fail(ExitCode::kUsage, "[tycho config] expected a recipe: tycho config RECIPE --why KEY");
  }
  import_request(query.recipe);
  const InterruptLua interruptible;
  if (resolved) {
    print_exact_text();
    fmt::print("{}\n", config_to_json(resolve_recipe(query.recipe).config).dump(2));
    return 0;
  }
  if (hash) return print_identity(resolve_recipe(query.recipe), arguments.has("json"));
  const Json shown = show_config(query);
  const bool json = arguments.has("json");
  print_exact_text();
  fmt::print("{}", json ? shown.at("rows").dump(2) + "\n" : shown.at("text").get<std::string>());
  return 0;
}

}  // namespace tycho
