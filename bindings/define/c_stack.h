// Limits the C stack of Lua code, which nested coroutines and nested calls between C and Lua use up before
// Lua's own limits.
#pragma once
#include <lua.hpp>

namespace tycho {

/// Raises a Lua error when too little of the stack is left, long before its end. For C functions that call
/// Lua.
void ensure_c_stack(lua_State* L);

}  // namespace tycho
