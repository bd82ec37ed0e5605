// Runs that train nothing: a spec gives the numbers of each step, and sees what the callbacks of a recipe do
// with them.
#pragma once
#include <lua.hpp>

namespace tycho {

/// Registers the functions behind fake_run of specs as the module "tycho.fake_run.host".
void open_fake_runs(lua_State* L);

}  // namespace tycho
