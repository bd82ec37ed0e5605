// Machine functions for Lua.
#include "bindings/define/machine_functions.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

#include "bindings/define/lua_util.h"
#include "trainer/base/environment.h"
#include "trainer/base/secrets.h"

namespace tycho {
namespace {

/// env(name) -> text | nil
int env(lua_State* L) {
  const char* value = std::getenv(luaL_checkstring(L, 1));
  lua_pushstring(L, value);  // nil for a null pointer
  return 1;
}

/// is_secret_name(name) -> boolean
int names_secret(lua_State* L) {
  return protect(L, [&] { return lua_pushboolean(L, is_secret_name(string_argument(L, 1)) ? 1 : 0), 1; });
}

/// register_secret(value) -> true when it is masked from now on; false when it is too short
int hide(lua_State* L) {
  return protect(L, [&] { return lua_pushboolean(L, register_secret(string_argument(L, 1)) ? 1 : 0), 1; });
}

/// output(text): prints to stderr, so that stdout carries only the output of the verb
int output(lua_State* L) {
  return protect(L, [&] {
    const std::string text = without_secrets(string_argument(L, 1));
    std::fwrite(text.data(), 1, text.size(), stderr);
    return 0;
  });
}

/// find_program(name) -> its path in PATH | nil
int find_program(lua_State* L) {
  return protect(L, [&] {
    const std::string name = string_argument(L, 1);
    std::istringstream folders(environment_variable("PATH"));
    for (std::string folder; std::getline(folders, folder, ':');) {
      const std::string file = folder + "/" + name;
      if (::access(file.c_str(), X_OK) == 0) return lua_pushlstring(L, file.data(), file.size()), 1;
    }
    return 0;
  });
}

/// exists(path) -> boolean
int exists(lua_State* L) {
  return protect(L, [&] {
    std::error_code error;
    lua_pushboolean(L, std::filesystem::exists(string_argument(L, 1), error) ? 1 : 0);
    return 1;
  });
}

/// free_bytes(path) -> number | nil
int free_bytes(lua_State* L) {
  return protect(L, [&] {
    std::error_code error;
    const std::filesystem::space_info space = std::filesystem::space(string_argument(L, 1), error);
    if (error) return 0;
    lua_pushnumber(L, static_cast<double>(space.available));
    return 1;
  });
}

}  // namespace

void add_machine_functions(lua_State* L) {
  const luaL_Reg functions[] = {{"env", env},
                                {"output", output},
                                {"is_secret_name", names_secret},
                                {"register_secret", hide},
                                {"find_program", find_program},
                                {"exists", exists},
                                {"free_bytes", free_bytes}};
  for (const auto& [name, function] : functions) {
    lua_pushcfunction(L, function);
    lua_setfield(L, -2, name);
  }
}

}  // namespace tycho
