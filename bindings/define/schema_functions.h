// The part of tycho.native about files that are not recipes: sweeps and in-context tasks.
#pragma once
#include <lua.hpp>

namespace tycho {

/// Adds sweep_schema, icl_schema and check_icl to the table on top of the stack.
void add_schema_functions(lua_State* L);

}  // namespace tycho
