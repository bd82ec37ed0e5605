// Joins the terms into one expression, so that what they share is computed once.
#include "trainer/expression/loss_expression.h"

#include <algorithm>
#include <iterator>

#include "trainer/base/error.h"
#include "trainer/expression/derivative.h"
#include "trainer/expression/expression_check.h"
#include "trainer/expression/expression_json.h"
#include "trainer/expression/expression_text.h"
#include "trainer/expression/simplify.h"

namespace tycho {
namespace {

constexpr const char* kTotal = "total";

int32_t add(Expression& to, Op op, int32_t a, int32_t b = -1) {
  to.nodes.push_back({.op = op, .arguments = {a, b, -1}});
  return static_cast<int32_t>(to.nodes.size()) - 1;
}

/// Returns an expression of kLossInputs, whose node i is input i.
Expression with_inputs() {
  Expression all;
  for (size_t i = 0; i < kLossInputs.size(); ++i) {
    all.inputs.push_back({.name = kLossInputs[i]});
    all.nodes.push_back({.op = Op::kInput, .input = static_cast<int32_t>(i)});
  }
  return all;
}

int32_t node_of(std::string_view input) {
  const auto* found = std::find(kLossInputs.begin(), kLossInputs.end(), input);
  return found == kLossInputs.end() ? -1 : static_cast<int32_t>(found - kLossInputs.begin());
}

Expression read_term(const std::string& name, const Json& json) {
  Expression term = read_expression(json);
  const std::vector<NodeType> types = check_expression(term);
  TYCHO_CHECK(term.outputs.size() == 1, "[loss] {}: expected one output, got {}", name, term.outputs.size());
  for (const ExpressionInput& input : term.inputs)
    TYCHO_CHECK(node_of(input.name) >= 0 && !input.scalar && input.shape.is_flat(),
                "[loss] {}: expected inputs of a token such as lse and target, got {}", name, input.name);
  for (const Node& node : term.nodes)
    TYCHO_CHECK(operation(node.op).kind != OpKind::kReduction && operation(node.op).kind != OpKind::kMatrix,
                "[loss] {}: expected operations on one token, got {}", name, operation(node.op).name);
  return term;
}

/// Appends the nodes of a term. Returns the node of its output.
int32_t append(Expression& to, const Expression& term) {
  std::vector<int32_t> moved;
  for (const Node& node : term.nodes) {
    if (node.op == Op::kInput) {
      moved.push_back(node_of(term.inputs[static_cast<size_t>(node.input)].name));
      continue;
    }
    Node copy = node;
    for (int32_t& argument : copy.arguments)
      if (argument >= 0) argument = moved[static_cast<size_t>(argument)];
    to.nodes.push_back(copy);
    moved.push_back(static_cast<int32_t>(to.nodes.size()) - 1);
  }
  return moved[static_cast<size_t>(term.outputs.front().node)];
}

}  // namespace

Expression loss_expression(const LossTerms& terms, bool with_gradients) {
  Expression all = with_inputs();
  const int32_t weight = add(all, Op::kAbs, node_of("weight"));
  const auto output = [&](const std::string& name, int32_t node) {
    all.outputs.push_back({name, add(all, Op::kMul, weight, node)});
    return all.outputs.back().node;
  };
  int32_t total = output(kCrossEntropyName, add(all, Op::kSub, node_of("lse"), node_of("target")));
  bool is_first = true;
  for (const auto& [name, json] : terms) {
    const int32_t term = output(term_output(name), append(all, read_term(name, json)));
    total = is_first ? term : add(all, Op::kAdd, total, term);
    is_first = false;
  }
  if (!with_gradients) return simplify(all);
  all.outputs.push_back({kTotal, total});
  all = derivative(all, kTotal, {kLossInputs.begin(), kLossInputs.begin() + kNumLossStatistics});
  all.outputs.erase(all.outputs.begin() + static_cast<int64_t>(output_named(all, kTotal)));
  return simplify(all);
}

bool reads_input(const LossTerms& terms, std::string_view input) {
  return std::any_of(terms.begin(), terms.end(), [&](const auto& term) {
    const Expression expression = simplify(read_term(term.first, term.second));
    return std::any_of(expression.nodes.begin(), expression.nodes.end(), [&](const Node& node) {
      return node.op == Op::kInput && expression.inputs[static_cast<size_t>(node.input)].name == input;
    });
  });
}

std::string text_of(const LossTerms& terms) {
  std::string text;
  for (const auto& [name, json] : terms) {
    Expression term = read_term(name, json);
    term.outputs.front().name = name;
    text += text_of(term);
  }
  return text;
}

}  // namespace tycho
