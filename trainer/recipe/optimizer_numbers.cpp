// The optimizer is written as JSON, changed and read again, so that every rule of its keys holds.
#include "trainer/recipe/optimizer_numbers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <variant>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/json_writer.h"
#include "trainer/base/nearest.h"
#include "trainer/recipe/config_io.h"

namespace tycho {
namespace {

constexpr const char* kStartAgain = "stop the run, change the recipe and start it again, which resumes it";

/// Keys that recipes do not write.
constexpr std::array<std::string_view, 5> kHidden = {"kind", "base", "updates", "number_limits", "code"};

/// Returns true for a number in the place of a number, and for a list of as many as another.
bool has_form_of(const Json& before, const Json& value) {
  return is_number_or_list(value) && value.is_array() == before.is_array() && value.size() == before.size();
}

/// Returns the keys that have a number, a list of numbers or null, which is a number that is left out; of an
/// optimizer of the recipe those that its formulas take.
std::vector<std::string> numeric_keys(const OptimizerConfig& optimizer, const Json& tree) {
  const auto* defined = std::get_if<DefinedOptimizerConfig>(&optimizer.value);
  const auto inputs = defined != nullptr ? defined->inputs() : std::map<std::string, bool>();
  std::vector<std::string> keys;
  for (const auto& [key, value] : tree.items())
    if (defined != nullptr ? inputs.contains(key)
                           : std::find(kHidden.begin(), kHidden.end(), key) == kHidden.end() &&
                                 (is_number_or_list(value) || value.is_null()))
      keys.push_back(key);
  return keys;
}

[[noreturn]] void no_such_number(const Json& tree, const std::string& kind, const std::string& name,
                                 const std::vector<std::string>& known) {
  const std::string list = name.substr(0, name.find('.'));
  if (list != name && tree.contains(list) && tree.at(list).is_array())
    fail(ExitCode::kRecipe,
         "[cmd.set_optimizer] optimizer.{}: expected the whole list, as in optimizer.{} = {}, got one value",
         name, list, tree.at(list).dump());
  const std::string near = did_you_mean(name, known);
  fail(ExitCode::kRecipe, "[cmd.set_optimizer] {} has no number \"{}\"{}", kind, name,
       near.empty() ? fmt::format(": its numbers are {}", fmt::join(known, ", ")) : near);
}

void require_input(const DefinedOptimizerConfig& defined, const Json& tree, const std::string& name) {
  const std::map<std::string, bool> inputs = defined.inputs();
  const auto found = inputs.find(name);
  if (found == inputs.end())
    fail(ExitCode::kRecipe,
         "[cmd.set_optimizer] optimizer.{} = {} was read while the formulas of {} were made, and is part of "
         "them: {}",
         name, tree.at(name).dump(), defined.defined, kStartAgain);
  if (!found->second)
    fail(ExitCode::kRecipe,
         "[cmd.set_optimizer] no formula of {} uses h.{}, so that another value would change nothing",
         defined.defined, name);
}

/// Returns the names of state that depend on numbers: sgd keeps none without momentum.
std::vector<std::string> state_names(const OptimizerConfig& optimizer) {
  return std::visit(
      []<class Kind>(const Kind& kind) -> std::vector<std::string> {
        if constexpr (CanBeDefined<Kind>)
          return {};
        else
          return kind.state_names(/*hidden_matrix=*/true);
      },
      optimizer.value);
}

}  // namespace

bool is_number_or_list(const Json& value) {
  return value.is_number() ||
         (value.is_array() && !value.empty() &&
          std::all_of(value.begin(), value.end(), [](const Json& item) { return item.is_number(); }));
}

void require_settable(const OptimizerConfig& optimizer, const std::string& name) {
  const Json tree = to_json(optimizer);
  const std::vector<std::string> known = numeric_keys(optimizer, tree);
  const bool is_hidden = std::find(kHidden.begin(), kHidden.end(), name) != kHidden.end();
  if (is_hidden || !tree.contains(name)) no_such_number(tree, optimizer.kind(), name, known);
  if (const auto* defined = std::get_if<DefinedOptimizerConfig>(&optimizer.value);
      defined != nullptr && defined->values.contains(name))
    return require_input(*defined, tree, name);
  if (std::find(known.begin(), known.end(), name) == known.end())
    fail(ExitCode::kRecipe, "[cmd.set_optimizer] optimizer.{} = {} is no number: {}", name,
         tree.at(name).dump(), kStartAgain);
}

OptimizerConfig with_numbers(const TrainConfig& recipe, const std::map<std::string, Json>& numbers) {
  Json tree = config_to_json(recipe);
  Json& optimizer = tree["optimizer"];
  for (const auto& [name, value] : numbers) {
    require_settable(recipe.optimizer, name);
    const Json& before = optimizer.at(name);
    if (!before.is_null() && !has_form_of(before, value))
      fail(ExitCode::kRecipe, "[cmd.set_optimizer] optimizer.{}: expected {}, got {}", name,
           before.is_array() ? fmt::format("a list of {} numbers such as {}", before.size(), before.dump())
                             : "a number",
           value.dump());
    optimizer[name] = value;
  }
  const OptimizerConfig changed = read_config_or_fail(tree).optimizer;
  if (state_names(changed) != state_names(recipe.optimizer))
    fail(ExitCode::kRecipe, "[cmd.set_optimizer] {} would keep other state with this value: {}",
         recipe.optimizer.kind(), kStartAgain);
  return changed;
}

}  // namespace tycho
