// Finds what was traced for a kind of parameter.
#include "trainer/recipe/defined_optimizer.h"

#include <fmt/ranges.h>

#include <set>
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/base/error.h"
#include "trainer/base/fields.h"
#include "trainer/base/json_reader.h"
#include "trainer/expression/expression.h"
#include "trainer/expression/expression_check.h"
#include "trainer/expression/expression_json.h"
#include "trainer/expression/init_expression.h"
#include "trainer/expression/update_phases.h"

namespace tycho {
namespace {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(ExitCode::kRecipe, "[optimizer.updates] {}; t.optim.define writes them: change the recipe's function",
       fmt::format(format, std::forward<Args>(args)...));
}

/// Returns true for a number, and for an expression of drawn numbers.
bool is_init(const Json& init) {
  if (init.is_object()) init_expression(init);  // throws
  return init.is_number() || init.is_object();
}

/// Returns true for an entry of number_limits.
bool is_limit(const Json& one) {
  if (!one.is_object() || !one.contains("name") || !one["name"].is_string()) return false;
  for (const auto& [key, value] : one.items())
    if (key.ends_with("_exclusive") ? !value.is_boolean() : key != "name" && !value.is_number()) return false;
  return true;
}

/// Returns true if a value has the shape of the parameter or state that it is to replace. One number may
/// replace all numbers of a parameter, and of state that has as many.
bool replaces(const Json& states, const Expression& expression, const std::string& name,
              const NodeType& type) {
  for (const Json& state : states) {
    if (name != "s." + state["name"].get<std::string>()) continue;
    if (state.value("scalar", false)) return type.scalar;
    if (const auto shape = state.find("shape"); shape != state.end())
      return !type.scalar &&
             type.shape == MatrixShape{(*shape)[0].get<int64_t>(), (*shape)[1].get<int64_t>()};
  }
  MatrixShape whole;
  for (const ExpressionInput& input : expression.inputs)
    if (input.name == "p") whole = input.shape;
  return type.scalar || type.shape == MatrixShape{1, 1} || type.shape == whole;
}

}  // namespace

const Json& DefinedOptimizerConfig::update_of(const std::vector<int64_t>& shape, bool hidden_matrix) const {
  const Json* any = nullptr;
  for (const Json& one : updates) {
    if (one.at("hidden").get<bool>() != hidden_matrix) continue;
    if (!one.contains("shape"))
      any = &one;
    else if (one["shape"].get<std::vector<int64_t>>() == shape)
      return one;
  }
  TYCHO_CHECK(any != nullptr, "[optimizer] expected an update of {} for parameters of shape [{}], got none",
              defined, fmt::join(shape, ", "));
  return *any;
}

std::vector<StateSpec> DefinedOptimizerConfig::state_specs(const std::vector<int64_t>& shape,
                                                           bool hidden_matrix) const {
  std::vector<StateSpec> specs;
  for (const Json& one : update_of(shape, hidden_matrix).at("states")) {
    StateSpec& spec = specs.emplace_back(StateSpec{one.at("name")});
    if (one.contains("shape")) spec.shape = one["shape"].get<std::vector<int64_t>>();
    if (one.value("scalar", false)) spec.shape = {1, 1}, spec.scalar = true;
    if (const auto init = one.find("init"); init != one.end() && init->is_number()) spec.first = *init;
  }
  return specs;
}

std::optional<std::array<double, 2>> DefinedOptimizerConfig::betas() const {
  const auto betas = values.find("betas");
  if (betas == values.end() || !betas->is_array() || betas->size() != 2) return std::nullopt;
  if (!(*betas)[0].is_number() || !(*betas)[1].is_number()) return std::nullopt;
  return std::array{(*betas)[0].get<double>(), (*betas)[1].get<double>()};
}

void DefinedOptimizerConfig::check_updates() const {
  if (!updates.is_array() || updates.empty()) refuse("expected a list, got {}", updates.type_name());
  for (const Json& one : updates) {
    if (!one.is_object() || !one.contains("hidden") || !one["hidden"].is_boolean() ||
        !one.contains("states") || !one["states"].is_array() || !one.contains("expression"))
      refuse("expected hidden, states and expression in each, got {}", one.dump().substr(0, 80));
    std::set<std::string> names = {"p", "g"};
    for (const Json& state : one["states"]) {
      if (!state.is_object() || !state.contains("name") || !state["name"].is_string() ||
          !is_init(state.value("init", Json(0))))
        refuse("expected states with names, got {}", state.dump());
      names.insert("s." + state["name"].get<std::string>());
    }
    const Expression expression = read_expression(one["expression"]);
    const std::vector<NodeType> types = check_expression(expression);
    if (needs_whole_matrix(expression) != one.value("whole", false))
      refuse("expected \"whole\" for reductions and operations on matrices only");
    for (const ExpressionInput& input : expression.inputs)
      if (!names.contains(input.name) && !(input.scalar && input.name.starts_with("h.")))
        refuse("expected the inputs p, g, state and hyperparameters, got {}", input.name);
    for (const ExpressionOutput& output : expression.outputs)
      if (!names.contains(output.name) || output.name == "g")
        refuse("expected the outputs p and state, got {}", output.name);
      else if (!replaces(one["states"], expression, output.name, types[static_cast<size_t>(output.node)]))
        refuse("expected {} in the shape of what it replaces", output.name);
    if (!one.contains("eval_weights")) continue;
    const Expression evaluated = read_expression(one["eval_weights"]);
    check_expression(evaluated);
    if (evaluated.outputs.size() != 1 || evaluated.outputs[0].name != "p")
      refuse("expected the output p of eval_weights, got {} outputs", evaluated.outputs.size());
  }
}

std::vector<ConfigProblem> DefinedOptimizerConfig::limit_problems() const {
  if (!number_limits.is_array())
    refuse("expected a list as number_limits, got {}", number_limits.type_name());
  std::vector<ConfigProblem> problems;
  for (const Json& one : number_limits) {
    if (!is_limit(one)) refuse("expected limits with a name, min and max, got {}", one.dump());
    const std::string name = one["name"];
    const auto value = values.find(name);
    if (value == values.end()) refuse("expected a value for the limits of \"{}\", got none", name);
    Rule rule = {.min_exclusive = one.value("min_exclusive", false),
                 .max_exclusive = one.value("max_exclusive", false)};
    if (one.contains("min")) rule.min = one["min"].get<double>();
    if (one.contains("max")) rule.max = one["max"].get<double>();
    const JsonPath place{*value, "optimizer." + name, problems};
    double read = 0;
    if (!value->is_array()) read_value(place, rule, read);
    for (size_t i = 0; value->is_array() && i < value->size(); ++i)
      read_value(place.item((*value)[i], i), rule, read);
  }
  return problems;
}

std::map<std::string, bool> DefinedOptimizerConfig::inputs() const {
  std::map<std::string, bool> names;
  const auto add = [&](const Json& json) {
    const Expression expression = read_expression(json);
    std::vector<bool> used(expression.inputs.size());
    for (const Node& node : expression.nodes)
      if (node.op == Op::kInput) used[static_cast<size_t>(node.input)] = true;
    for (size_t i = 0; i < used.size(); ++i)
      if (const std::string& name = expression.inputs[i].name; name.starts_with("h.")) {
        const std::string own = name.substr(2, name.find('.', 2) - 2);  // "betas" of "h.betas.1"
        names[own] = names[own] || used[i];
      }
  };
  for (const Json& one : updates) {
    add(one.at("expression"));
    if (one.contains("eval_weights")) add(one["eval_weights"]);
  }
  return names;
}

bool DefinedOptimizerConfig::updates_whole(const std::vector<int64_t>& shape, bool hidden_matrix) const {
  return update_of(shape, hidden_matrix).value("whole", false);
}

bool DefinedOptimizerConfig::updates_alone(const std::vector<int64_t>& shape, bool hidden_matrix) const {
  return update_of(shape, hidden_matrix).contains("shape");
}

}  // namespace tycho
