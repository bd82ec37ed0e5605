// tycho.native: what the Lua standard library asks C++ for. Units, numbers and names have one implementation,
// in trainer.
#pragma once
#include <lua.hpp>

namespace tycho {

/// Makes require "tycho.native" and every embedded module work in a state.
void open_library(lua_State* L);

}  // namespace tycho
