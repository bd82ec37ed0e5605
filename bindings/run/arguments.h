// The arguments of a method, checked as its declaration says.
#pragma once
#include "bindings/run/class.h"

namespace tycho {

/// Checks what is on the stack from index 2 on. Throws ScriptError (E_ARGUMENT) that names the argument, what
/// was wanted and what was given.
void check_arguments(lua_State* L, const Class& object, const Method& method);

}  // namespace tycho
