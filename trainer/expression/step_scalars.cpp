// Scalars are doubles; branches become constants, which simplify() follows.
#include "trainer/expression/step_scalars.h"

#include "trainer/base/error.h"
#include "trainer/expression/arithmetic.h"
#include "trainer/expression/expression_check.h"
#include "trainer/expression/simplify.h"

namespace tycho {
namespace {

bool is_branch(const Node& node, const NodeType& type) { return node.op == Op::kEvery && !type.scalar; }

}  // namespace

std::vector<double> scalar_values(const Expression& expression, const std::vector<double>& inputs) {
  const std::vector<NodeType> types = check_expression(expression);
  std::vector<double> values(types.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const Node& node = expression.nodes[i];
    if (!types[i].scalar) continue;
    const auto argument = [&](size_t k) {
      return node.arguments[k] < 0 ? 0.0 : values[static_cast<size_t>(node.arguments[k])];
    };
    if (node.op == Op::kNumber)
      values[i] = node.number;
    else if (node.op == Op::kInput)
      values[i] = inputs[static_cast<size_t>(node.input)];
    else
      values[i] = apply(node.op, Operands<double>{argument(0), argument(1), argument(2)});
  }
  return values;
}

std::vector<bool> taken_branches(const Expression& expression, const std::vector<double>& scalars) {
  const std::vector<NodeType> types = check_expression(expression);
  std::vector<bool> taken;
  for (size_t i = 0; i < types.size(); ++i)
    if (const Node& node = expression.nodes[i]; is_branch(node, types[i]))
      taken.push_back(scalars[static_cast<size_t>(node.arguments[0])] != 0);
  return taken;
}

Expression with_branches(const Expression& expression, const std::vector<bool>& taken) {
  const std::vector<NodeType> types = check_expression(expression);
  Expression out = expression;
  constexpr int32_t kTrue = 1, kFalse = 2, kAdded = 3;
  out.nodes.assign({{.op = Op::kNumber}, {.op = Op::kEq}, {.op = Op::kNe}});
  out.nodes[kTrue].arguments = out.nodes[kFalse].arguments = {0, 0, -1};
  if (!out.lines.empty()) out.lines.insert(out.lines.begin(), kAdded, "");
  size_t branch = 0;
  for (size_t i = 0; i < types.size(); ++i) {
    Node node = expression.nodes[i];
    for (int32_t& argument : node.arguments) argument += argument < 0 ? 0 : kAdded;
    if (is_branch(node, types[i])) {
      const bool first = taken[branch++];
      const NodeType& chosen = types[static_cast<size_t>(expression.nodes[i].arguments[first ? 1 : 2])];
      TYCHO_CHECK(chosen.shape == types[i].shape && !chosen.scalar,
                  "{}: expected two values of one shape to choose from; use x:broadcast(y)",
                  place_of(expression, i));
      node.arguments[0] = first ? kTrue : kFalse;
    }
    out.nodes.push_back(node);
  }
  for (ExpressionOutput& output : out.outputs) output.node += kAdded;
  return simplify(out);
}

}  // namespace tycho
