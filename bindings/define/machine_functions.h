// The part of tycho.native about the machine: environment, files, programs.
#pragma once
#include <lua.hpp>

namespace tycho {

/// Adds env, output, find_program, exists and free_bytes to the table on top of the stack.
void add_machine_functions(lua_State* L);

}  // namespace tycho
