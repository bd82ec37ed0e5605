// One Lua state for all rows, so that the function can keep something from row to row.
#include "bindings/define/row_function.h"

#include <filesystem>

#include "bindings/define/native.h"
#include "bindings/define/watch.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr char kExample[] =
    "return function(row) return { prompt = row.question, response = row.answer } end";

/// Makes require search the file's folder first.
void search_beside(lua_State* L, const std::string& file) {
  const std::string folder = std::filesystem::path(file).parent_path().string();
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "path");
  const std::string path = (folder.empty() ? "." : folder) + "/?.lua;" + lua_tostring(L, -1);
  lua_pushlstring(L, path.data(), path.size());
  lua_setfield(L, -3, "path");
  lua_pop(L, 2);
}

/// Pushes the function of the component that the file defines. Returns false, and pushes nothing, for a file
/// that defines none.
bool push_component(lua_State* L, const std::string& file, const std::vector<PinArgument>& fields) {
  Json arguments = Json::array();
  for (const PinArgument& one : fields) arguments.push_back({{"argument", one.number}, {"text", one.text}});
  lua_getglobal(L, "require");
  lua_pushstring(L, "tycho.own.rows");
  call_lua(L, 1, 1);
  lua_getfield(L, -1, "load");
  push_json(L, {{"file", file}, {"arguments", arguments}});
  call_lua(L, 1, 2);
  const Json result = read_json(L, -2);
  if (result.at("problems") != 0) throw RecipeError(result.at("report").get<std::string>(), Json::array());
  return !lua_isnil(L, -1);
}

/// Replaces the function on top of the stack by one whose errors name missing fields.
void guard(lua_State* L, const std::string& file) {
  lua_getglobal(L, "require");
  lua_pushstring(L, "tycho.own.rows");
  call_lua(L, 1, 1);
  lua_getfield(L, -1, "guarded");
  lua_pushlstring(L, file.data(), file.size());
  lua_pushvalue(L, -4);
  call_lua(L, 2, 1);
}

}  // namespace

RowFunction::RowFunction(const std::string& file, const std::vector<PinArgument>& fields) : file_(file) {
  lua_State* L = state_.get();
  open_library(L);
  const LuaWatch watch(L, {.what = "the file of the row function"});
  if (push_component(L, file, fields)) {
    guard(L, file);
    function_ = luaL_ref(L, LUA_REGISTRYINDEX);
    return;
  }
  if (!fields.empty())
    fail(ExitCode::kUsage,
         "[{}] expected a component for {}, got a file without t.component: leave it out, or return "
         "t.component {{ "
         "kind = \"rows\", fields = {{ ... }}, ... }}",
         file, fields[0].text);
  search_beside(L, file);
  if (luaL_loadfile(L, file.c_str()) != 0)
    fail(ExitCode::kUsage, "[{}] cannot be loaded: {}", file, lua_tostring(L, -1));
  call_lua(L, 0, 1);
  if (!lua_isfunction(L, -1))
    fail(ExitCode::kUsage, "[{}] expected a file that returns a function, got {}; write, for example: {}",
         file, luaL_typename(L, -1), kExample);
  guard(L, file);
  function_ = luaL_ref(L, LUA_REGISTRYINDEX);
}

std::vector<Json> RowFunction::operator()(const Json& row, const std::string& place) {
  lua_State* L = state_.get();
  lua_settop(L, 0);
  Json result;
  bool nothing = false;
  try {
    const LuaWatch watch(L, {.what = "the row function"});
    lua_rawgeti(L, LUA_REGISTRYINDEX, function_);
    push_json(L, row);
    call_lua(L, 1, 1);
    nothing = lua_isnil(L, -1) || (lua_isboolean(L, -1) && !lua_toboolean(L, -1));
    if (!nothing) result = read_json(L, -1);
  } catch (const Error& error) {
    if (error.code() == ExitCode::kInterrupted) throw;
    throw Error(fmt::format("[{}] {} failed: {}", place, file_, error.what()), ExitCode::kUnusable);
  }
  if (nothing) return {};
  if (!result.is_array()) result = Json::array({std::move(result)});
  std::vector<Json> rows(result.begin(), result.end());
  for (const Json& one : rows)
    if (!one.is_object())
      fail(ExitCode::kUnusable, "[{}] expected a row, a list of rows, or nil from {}, got {}", place, file_,
           one.dump());
  return rows;
}

}  // namespace tycho
