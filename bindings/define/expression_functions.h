// Expressions that Lua has traced.
#pragma once
#include <lua.hpp>

namespace tycho {

/// Adds `expression` and `expression_text` to the table on top of the stack.
void add_expression_functions(lua_State* L);

}  // namespace tycho
