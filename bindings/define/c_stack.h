// How much of the C stack Lua code may use: coroutines and functions of C that call Lua lie in it inside each
// other.
#pragma once
#include <lua.hpp>

namespace tycho {

/// Raises a Lua error when too little of the stack is left, long before its end. For C functions that call
/// Lua.
void ensure_c_stack(lua_State* L);

}  // namespace tycho
