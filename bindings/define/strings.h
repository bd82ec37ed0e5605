// string.find, match, gmatch and gsub of recipes: Lua's own, but the watch can end them.
#pragma once
#include <lua.hpp>

namespace tycho {

/// Pushes a table with find, match, gmatch and gsub.
void push_strings(lua_State* L);

}  // namespace tycho
