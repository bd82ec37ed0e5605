// Names of parts of expressions, in messages and look-ups.
#include "trainer/expression/expression.h"

#include <fmt/format.h>

#include "trainer/base/error.h"

namespace tycho {
namespace {

template <class Part>
size_t index_of(const std::vector<Part>& parts, std::string_view name, const char* what) {
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i].name == name) return i;
  fail(ExitCode::kRecipe, "[expression] expected an expression with the {} '{}', got none of that name", what,
       name);
}

}  // namespace

std::optional<Op> operation_named(std::string_view name) {
  for (int op = 0; op < kNumOps; ++op)
    if (name == kOperations[op].name) return static_cast<Op>(op);
  return std::nullopt;
}

std::string place_of(const Expression& expression, size_t node) {
  const char* name = operation(expression.nodes.at(node).op).name;
  if (node < expression.lines.size() && !expression.lines[node].empty())
    return fmt::format("[expression] {}: {}", expression.lines[node], name);
  return fmt::format("[expression] node {}: {}", node, name);
}

size_t input_named(const Expression& expression, std::string_view name) {
  return index_of(expression.inputs, name, "input");
}

size_t output_named(const Expression& expression, std::string_view name) {
  return index_of(expression.outputs, name, "output");
}

}  // namespace tycho
