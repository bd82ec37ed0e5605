// Checks and simplifies what Lua has traced.
#include "bindings/define/expression_functions.h"

#include <cmath>
#include <optional>

#include "bindings/define/lua_util.h"
#include "bindings/define/model_functions.h"
#include "trainer/base/error.h"
#include "trainer/expression/arithmetic.h"
#include "trainer/expression/expression_check.h"
#include "trainer/expression/expression_json.h"
#include "trainer/expression/expression_text.h"
#include "trainer/expression/simplify.h"

namespace tycho {
namespace {

/// Throws Error at a number that is NaN whatever the run computes.
void refuse_constant_nan(const Expression& simplified) {
  for (size_t i = 0; i < simplified.nodes.size(); ++i) {
    if (simplified.nodes[i].op != Op::kNumber || !std::isnan(simplified.nodes[i].number)) continue;
    const std::string place = simplified.lines.empty() ? "" : simplified.lines[i];
    fail(ExitCode::kRecipe,
         "{}expected numbers, got NaN, which constants make here whatever the run computes: 0 / 0, "
         "inf - inf, or the log, sqrt or a power of a number below 0. Write the number that you mean. A "
         "bound such as t.max(x, 1e-8), or t.where(condition, a, b), keeps elements away from such points",
         place.empty() ? "" : place + ": ");
  }
}

/// Returns { rows, columns: 0 of elements without a shape, or scalar, and at = the line } of each output, by
/// name.
Json outputs_of(const Expression& expression) {
  const std::vector<NodeType> types = check_expression(expression);
  Json out = Json::object();
  for (const ExpressionOutput& output : expression.outputs) {
    const auto node = static_cast<size_t>(output.node);
    out[output.name] = {{"rows", types[node].shape.rows},
                        {"columns", types[node].shape.columns},
                        {"scalar", types[node].scalar},
                        {"at", expression.lines.empty() ? "" : expression.lines[node]}};
  }
  return out;
}

/// expression(data) -> { expression = simplified, text = its formulas, outputs = see outputs_of } | nil,
/// message
int expression(lua_State* L) {
  return protect(L, [&] {
    try {
      const Expression traced = read_expression(read_json(L, 1));
      check_expression(traced);
      Expression simplified = simplify(traced);
      refuse_constant_nan(simplified);
      const Json outputs = outputs_of(simplified);
      simplified.lines.clear();
      push_json(L, {{"expression", write_expression(simplified)},
                    {"text", text_of(simplified)},
                    {"outputs", outputs}});
      return 1;
    } catch (const Error& error) {
      return push_refusal(L, error.what());
    }
  });
}

/// operation(name, a, b, c) -> its result for plain numbers, as constants are folded
int operation_on_numbers(lua_State* L) {
  return protect(L, [&] {
    const std::optional<Op> op = operation_named(string_argument(L, 1));
    TYCHO_CHECK(op && operation(*op).kind == OpKind::kArithmetic,
                "[expression] expected an operation on numbers, got {}", string_argument(L, 1));
    double x[3] = {};
    for (int i = 0; i < operation(*op).arguments; ++i) x[i] = luaL_checknumber(L, i + 2);
    lua_pushnumber(L, apply(*op, Operands<double>{x[0], x[1], x[2]}));
    return 1;
  });
}

/// expression_text(expression) -> its formulas, one in a line
int expression_text(lua_State* L) {
  return protect(L, [&] {
    push_json(L, text_of(read_expression(read_json(L, 1))));
    return 1;
  });
}

}  // namespace

void add_expression_functions(lua_State* L) {
  lua_pushcfunction(L, expression);
  lua_setfield(L, -2, "expression");
  lua_pushcfunction(L, operation_on_numbers);
  lua_setfield(L, -2, "operation");
  lua_pushcfunction(L, expression_text);
  lua_setfield(L, -2, "expression_text");
}

}  // namespace tycho
