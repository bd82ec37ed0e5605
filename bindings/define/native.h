// tycho.native: what the Lua standard library asks C++ for. Units, numbers and names have one implementation,
// in trainer.
#pragma once
#include <lua.hpp>

namespace tycho {

/// Registers the modules "tycho.native" and all embedded ones in a state.
void open_library(lua_State* L);

}  // namespace tycho
