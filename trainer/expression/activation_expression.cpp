// Adds the gate and the gradient to a recipe's function.
#include "trainer/expression/activation_expression.h"

#include "trainer/base/error.h"
#include "trainer/expression/derivative.h"
#include "trainer/expression/expression_check.h"
#include "trainer/expression/expression_json.h"
#include "trainer/expression/simplify.h"

namespace tycho {
namespace {

int32_t multiply(Expression& to, int32_t a, int32_t b) {
  to.nodes.push_back({.op = Op::kMul, .arguments = {a, b, -1}});
  return static_cast<int32_t>(to.nodes.size()) - 1;
}

int32_t add_input(Expression& to, const char* name) {
  to.inputs.push_back({.name = name});
  to.nodes.push_back({.op = Op::kInput, .input = static_cast<int32_t>(to.inputs.size()) - 1});
  return static_cast<int32_t>(to.nodes.size()) - 1;
}

/// Returns the function with its input and output under the names of this file.
Expression read_function(const Json& json) {
  Expression read = read_expression(json);
  const std::vector<NodeType> types = check_expression(read);
  TYCHO_CHECK(read.inputs.size() == 1 && !read.inputs[0].scalar && read.inputs[0].shape.is_flat(),
              "[activation] expected a function of one number of each element, got {} inputs",
              read.inputs.size());
  TYCHO_CHECK(read.outputs.size() == 1 && !types[static_cast<size_t>(read.outputs[0].node)].scalar,
              "[activation] expected one result that depends on x, got {}",
              read.outputs.size() == 1 ? "the same number for all x" : "several");
  for (const Node& node : read.nodes)
    TYCHO_CHECK(operation(node.op).kind != OpKind::kReduction && operation(node.op).kind != OpKind::kMatrix,
                "[activation] expected operations on one element, got {}", operation(node.op).name);
  read.inputs[0].name = kActivationInput, read.outputs[0].name = kActivationOutput;
  read.lines.clear();
  return read;
}

}  // namespace

Expression activation_forward(const Json& function, bool gated) {
  Expression out = read_function(function);
  if (gated) out.outputs[0].node = multiply(out, out.outputs[0].node, add_input(out, kActivationUp));
  return simplify(out);
}

Expression activation_backward(const Json& function, bool gated) {
  Expression out = derivative(read_function(function), kActivationOutput, {kActivationInput});
  const int32_t y = out.outputs[0].node, slope = out.outputs[1].node;
  out.outputs.clear();
  const int32_t up = gated ? add_input(out, kActivationUp) : -1;
  const int32_t dy = add_input(out, kActivationGradient);
  out.outputs.push_back({kActivationOutput, gated ? multiply(out, y, up) : y});
  out.outputs.push_back({kActivationInput, multiply(out, gated ? multiply(out, dy, up) : dy, slope)});
  if (gated) out.outputs.push_back({kActivationUp, multiply(out, dy, y)});
  return simplify(out);
}

}  // namespace tycho
