// tycho config: every key, its value and where it comes from.
#include "host/signals.h"
#include "host/verb.h"

namespace tycho {

const VerbSpec kConfigSpec = {
    "config [RECIPE] [path] [key=value ...]",
    "Shows every key: value, default, help, and who set it. Without a recipe: the schema.",
    "  tycho config recipes/demo.lua optimizer\n"
    "  tycho config recipes/demo.lua optimizer.lr=1e-3 --why optimizer.lr",
    {{"why", "Show who gave KEY which values, newest last.", "KEY"},
     {"changed", "Only what is not a default."},
     kJsonOption,
     kTraceOption}};

int run_config(const Arguments& arguments) {
  ConfigQuery query;
  query.recipe.trace = arguments.has("trace");
  query.changed = arguments.has("changed");
  if (arguments.has("why")) query.why = arguments.text("why");
  for (size_t i = 0; i < arguments.words.size(); ++i) {
    const std::string& one = arguments.words[i];
    if (one.find('=') != std::string::npos) {
      query.recipe.pins.push_back({arguments.numbers[i], one});
    } else if (query.recipe.file.empty() && (one.ends_with(".lua") || one.find('/') != std::string::npos)) {
      query.recipe.file = one;
    } else if (query.under.empty()) {
      query.under = one;
    } else {
      fail(ExitCode::kUsage, "[tycho config] did not expect \"{}\"; see --help", one);
    }
  }
  if (query.recipe.file.empty() && (!query.why.empty() || !query.recipe.pins.empty())) {
    fail(ExitCode::kUsage, "[tycho config] wanted a recipe: tycho config RECIPE --why KEY");
  }
  const InterruptLua interruptible;
  const Json shown = show_config(query);
  const bool json = arguments.has("json");
  fmt::print("{}", json ? shown.at("rows").dump(2) + "\n" : shown.at("text").get<std::string>());
  return 0;
}

}  // namespace tycho
