// Checks and simplifies what Lua has traced.
#include "bindings/define/expression_functions.h"

#include "bindings/define/lua_util.h"
#include "bindings/define/model_functions.h"
#include "trainer/expression/expression_check.h"
#include "trainer/expression/expression_json.h"
#include "trainer/expression/expression_text.h"
#include "trainer/expression/simplify.h"

namespace tycho {
namespace {

/// expression(data) -> { expression = simplified, text = its formulas } | nil, message
int expression(lua_State* L) {
  return protect(L, [&] {
    try {
      const Expression traced = read_expression(read_json(L, 1));
      check_expression(traced);
      Expression simplified = simplify(traced);
      simplified.lines.clear();
      push_json(L, {{"expression", write_expression(simplified)}, {"text", text_of(simplified)}});
      return 1;
    } catch (const Error& error) {
      return push_refusal(L, error.what());
    }
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
  lua_pushcfunction(L, expression_text);
  lua_setfield(L, -2, "expression_text");
}

}  // namespace tycho
