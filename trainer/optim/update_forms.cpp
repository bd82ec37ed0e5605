// Scales gradients, chooses branches, cuts in phases, compiles.
#include "trainer/optim/update_forms.h"

#include <fmt/ranges.h>

#include "trainer/base/error.h"
#include "trainer/expression/expression_check.h"
#include "trainer/expression/step_scalars.h"
#include "trainer/expression/update_phases.h"

namespace tycho {
namespace {

/// Returns the expression with g * grad_scale in place of g.
Expression with_scaled_gradients(const Expression& update) {
  Expression out = update;
  out.inputs.push_back({kGradScale, false, {1, 1}});
  out.nodes.clear(), out.lines.clear();
  std::vector<int32_t> moved;
  const auto add = [&](const Node& node, size_t from) {
    out.nodes.push_back(node);
    if (!update.lines.empty()) out.lines.push_back(update.lines[from]);
    return static_cast<int32_t>(out.nodes.size() - 1);
  };
  for (size_t i = 0; i < update.nodes.size(); ++i) {
    Node node = update.nodes[i];
    for (int32_t& argument : node.arguments)
      if (argument >= 0) argument = moved[static_cast<size_t>(argument)];
    moved.push_back(add(node, i));
    if (node.op != Op::kInput || update.inputs[static_cast<size_t>(node.input)].name != "g") continue;
    const int32_t scale = add({.op = Op::kInput, .input = static_cast<int32_t>(out.inputs.size() - 1)}, i);
    moved.back() = add({.op = Op::kMul, .arguments = {moved.back(), scale, -1}}, i);
  }
  for (ExpressionOutput& output : out.outputs) output.node = moved[static_cast<size_t>(output.node)];
  return out;
}

/// Throws unless all ranks take the same branch: state is known where a part of the parameter is.
void check_conditions(const Expression& update) {
  std::vector<bool> from_state;
  for (size_t i = 0; i < update.nodes.size(); ++i) {
    const Node& node = update.nodes[i];
    bool is = node.op == Op::kInput && update.inputs[static_cast<size_t>(node.input)].name.starts_with("s.");
    for (int k = 0; k < operation(node.op).arguments; ++k)
      is |= from_state[static_cast<size_t>(node.arguments[static_cast<size_t>(k)])];
    from_state.push_back(is);
    TYCHO_CHECK(node.op != Op::kEvery || !from_state[static_cast<size_t>(node.arguments[0])],
                "{}: expected a condition on the step or hyperparameters, got one on state",
                place_of(update, i));
  }
}

std::unique_ptr<const Program> compiled(const Expression& phase) {
  return phase.outputs.empty() ? nullptr : std::make_unique<const Program>(phase);
}

}  // namespace

UpdateForms::UpdateForms(const Expression& update, std::set<std::string> parts)
    : update_(with_scaled_gradients(update)), parts_(std::move(parts)) {
  check_expression(update_);
  check_conditions(update_);
}

std::vector<double> UpdateForms::scalars(const StepNumbers& numbers) const {
  std::vector<double> inputs;
  for (const ExpressionInput& input : update_.inputs)
    inputs.push_back(input.scalar ? number_named(numbers, input.name) : 0);
  return scalar_values(update_, inputs);
}

const UpdateForm& UpdateForms::form(const StepNumbers& numbers) {
  const std::vector<bool> taken = taken_branches(update_, scalars(numbers));
  UpdateForm& form = forms_[taken];
  if (form.after == nullptr) {
    Phases phases = cut_in_phases(with_branches(update_, taken), parts_, kGradScale);
    form = {compiled(phases.before), compiled(phases.after), std::move(phases.whole)};
  }
  return form;
}

StepNumbers UpdateForms::scalar_outputs(const StepNumbers& numbers) const {
  const std::vector<NodeType> types = check_expression(update_);
  const std::vector<double> values = scalars(numbers);
  StepNumbers out;
  for (const ExpressionOutput& output : update_.outputs)
    if (types[static_cast<size_t>(output.node)].scalar && !parts_.contains(output.name))
      out[output.name] = values[static_cast<size_t>(output.node)];
  return out;
}

double number_named(const StepNumbers& numbers, const std::string& name) {
  const auto found = numbers.find(name);
  if (found != numbers.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [one, value] : numbers) known.push_back(one);
  fail(ExitCode::kRecipe, "[optimizer] expected one of the numbers {}, got {}", fmt::join(known, ", "), name);
}

}  // namespace tycho
