// The arguments of a method, checked as its declaration says.
#pragma once
#include "bindings/run/class.h"

namespace tycho {

/// Checks the arguments on the stack, from index 2 on. Throws ScriptError (E_ARGUMENT) with the name of the
/// argument, what was expected and what it got.
void check_arguments(lua_State* L, const Class& object, const Method& method);

}  // namespace tycho
