// The keys of such files, and the rules between those of tasks.
#include "bindings/define/schema_functions.h"

#include <vector>

#include "bindings/define/lua_util.h"
#include "trainer/base/json_reader.h"
#include "trainer/base/schema.h"
#include "trainer/recipe/icl.h"
#include "trainer/sweep/config.h"

namespace tycho {
namespace {

/// sweep_schema() -> schema of t.sweep
int sweep_schema(lua_State* L) {
  return protect(L, [&] {
    push_json(L, schema_of<SweepConfig>());
    return 1;
  });
}

/// icl_schema() -> schema of a file of in-context tasks
int icl_schema(lua_State* L) {
  return protect(L, [&] {
    push_json(L, schema_of<IclConfig>());
    return 1;
  });
}

/// check_icl(tree) -> list of { path, message } from the rules between the keys of such a file
int check_icl(lua_State* L) {
  return protect(L, [&] {
    std::vector<ConfigProblem> all;
    const auto config = from_json<IclConfig>(read_json(L, 1), all);
    ConfigProblems problems;
    if (all.empty()) check(config, "", problems);
    problems.add_all(all);
    Json list = Json::array();
    for (const ConfigProblem& one : problems.take())
      list.push_back({{"path", one.path}, {"message", one.message}});
    push_json(L, list);
    return 1;
  });
}

}  // namespace

void add_schema_functions(lua_State* L) {
  for (const luaL_Reg& function : {luaL_Reg{"sweep_schema", sweep_schema}, luaL_Reg{"icl_schema", icl_schema},
                                   luaL_Reg{"check_icl", check_icl}}) {
    lua_pushcfunction(L, function.func);
    lua_setfield(L, -2, function.name);
  }
}

}  // namespace tycho
