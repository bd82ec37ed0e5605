// Runs that train nothing: a spec gives the numbers of each step, and sees what the callbacks of a recipe do
// with them.
#pragma once
#include <lua.hpp>

namespace tycho {

/// Makes require "tycho.fake_run.host" give the functions behind fake_run of specs.
void open_fake_runs(lua_State* L);

}  // namespace tycho
