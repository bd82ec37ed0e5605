// table.sort, coroutine.resume and coroutine.wrap as Lua has them, but the watch can end a long sort, and
// coroutines inside each other cannot overflow the C stack.
#pragma once
#include <lua.hpp>

namespace tycho {

/// Replaces these functions in the libraries of a state, for recipes and the host.
void replace_standard_functions(lua_State* L);

}  // namespace tycho
