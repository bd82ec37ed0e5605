// Lua states, and passing errors and values between C++ and Lua.
#include "bindings/define/lua_util.h"

#include <cxxabi.h>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <typeinfo>

#include "bindings/define/standard_functions.h"
#include "trainer/base/secrets.h"

namespace tycho {
namespace {

const char* const kErrorMeta = "tycho.error";
const char* const kArrayMeta = "tycho.array";
/// Registry key of error objects and their exit codes, kept where recipes, which can set any field of an
/// object, cannot reach it.
const char* const kExitCodes = "tycho.exit_codes";
constexpr int kMaxDepth = 64;

const char* code_name(ExitCode code) {
  switch (code) {
    case ExitCode::kUsage: return "E_USAGE";
    case ExitCode::kRecipe: return "E_RECIPE";
    case ExitCode::kUnusable: return "E_DATA";
    case ExitCode::kNumerics: return "E_NUMERICS";
    case ExitCode::kStorage: return "E_STORAGE";
    case ExitCode::kInterrupted: return "E_INTERRUPTED";
    default: return "E_FAILURE";
  }
}

int error_text(lua_State* L) {
  lua_getfield(L, 1, "message");
  return 1;
}

void set_field(lua_State* L, const char* key, const std::string& value) {
  lua_pushlstring(L, value.data(), value.size());
  lua_setfield(L, -2, key);
}

/// Returns file:line of the innermost frame of recipe code, "" when there is none.
std::string recipe_frame(lua_State* L) {
  lua_Debug frame;
  for (int level = 0; lua_getstack(L, level, &frame) != 0; ++level) {
    lua_getinfo(L, "Sl", &frame);
    if (frame.source[0] == '@' && frame.currentline > 0) {
      return fmt::format("{}:{}", frame.source + 1, frame.currentline);
    }
  }
  return "";
}

/// Message handler: turns plain text into an error object and records the frames while they exist.
int with_trace(lua_State* L) {
  if (!lua_istable(L, 1)) {
    const char* text = lua_tostring(L, 1);
    push_error(L, text != nullptr ? text : "an error value that is not text", ExitCode::kFailure);
    lua_replace(L, 1);
  }
  lua_pushliteral(L, "trace");
  luaL_traceback(L, L, nullptr, 1);
  lua_rawset(L, 1);
  lua_settop(L, 1);
  return 1;
}

std::string field_text(lua_State* L, int index, const char* key) {
  // Raw: outside of a protected call, a metamethod of the table that raises would end the process.
  lua_pushvalue(L, index);
  lua_pushstring(L, key);
  lua_rawget(L, -2);
  lua_remove(L, -2);
  const char* text = lua_tostring(L, -1);
  std::string copy = text != nullptr ? text : "";
  lua_pop(L, 1);
  return copy;
}

/// Pops the error object on top of the stack and returns it as an exception.
Error pop_error(lua_State* L, bool trace) {
  if (!lua_istable(L, -1)) {  // out of memory, or an error in the message handler
    const char* text = lua_tostring(L, -1);
    Error error(without_secrets(text != nullptr ? text : "Lua raised an error without a message"),
                ExitCode::kFailure);
    lua_pop(L, 1);
    return error;
  }
  std::string message = field_text(L, -1, "message");
  if (trace) message += "\n" + field_text(L, -1, "trace");
  const std::optional<ExitCode> code = exit_of(L, -1);
  lua_pop(L, 1);
  return Error(without_secrets(std::move(message)), code.value_or(ExitCode::kFailure));
}

Json read_number(double x) {
  if (x == std::floor(x) && std::abs(x) <= 0x1p53) return static_cast<int64_t>(x);
  return x;
}

bool is_array(lua_State* L, int index) {
  if (lua_getmetatable(L, index) != 0) {
    luaL_getmetatable(L, kArrayMeta);
    const bool marked = lua_rawequal(L, -1, -2) != 0;
    lua_pop(L, 2);
    if (marked) return true;
  }
  return lua_objlen(L, index) > 0;
}

Json read_at(lua_State* L, int index, int depth);

Json read_table(lua_State* L, int index, int depth) {
  if (depth > kMaxDepth)
    fail(ExitCode::kRecipe, "[lua] expected plain data, got tables more than {} deep", kMaxDepth);
  if (is_array(L, index)) {
    Json list = Json::array();
    for (size_t i = 1; i <= lua_objlen(L, index); ++i) {
      lua_rawgeti(L, index, static_cast<int>(i));
      list.push_back(read_at(L, lua_gettop(L), depth + 1));
      lua_pop(L, 1);
    }
    return list;
  }
  std::map<std::string, Json> sorted;  // Lua's own order differs between processes
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING)
      fail(ExitCode::kRecipe, "[lua] expected names as keys of a table of data");
    sorted[lua_tostring(L, -2)] = read_at(L, lua_gettop(L), depth + 1);
  }
  Json::object_t object;  // Json's own [] searches all keys, of which a history has thousands
  object.reserve(sorted.size());
  for (auto& [key, value] : sorted) object.emplace_back(key, std::move(value));
  return object;
}

Json read_at(lua_State* L, int index, int depth) {
  luaL_checkstack(L, 4, "data too deep");
  switch (lua_type(L, index)) {
    case LUA_TNIL: return nullptr;
    case LUA_TBOOLEAN: return lua_toboolean(L, index) != 0;
    case LUA_TNUMBER: return read_number(lua_tonumber(L, index));
    case LUA_TSTRING: {
      size_t size = 0;
      const char* text = lua_tolstring(L, index, &size);
      return std::string(text, size);
    }
    case LUA_TTABLE: return read_table(L, index, depth);
    case LUA_TLIGHTUSERDATA: return nullptr;
    default:
      fail(ExitCode::kRecipe, "[lua] expected data (numbers, text, tables), got a {}",
           luaL_typename(L, index));
  }
}

}  // namespace

void* LuaState::allocate(void* budget, void* block, size_t old_bytes, size_t new_bytes) {
  Budget& of = *static_cast<Budget*>(budget);
  const size_t used = of.used - old_bytes + new_bytes;
  if (new_bytes > old_bytes && used > 2 * of.max) return nullptr;
  of.used = used;
  // The watch collects garbage, and ends what still uses too much.
  const bool is_above = used > of.max;
  if (is_above && !of.is_above) LuaWatch::look_soon();
  of.is_above = is_above;
  if (new_bytes != 0) return std::realloc(block, new_bytes);
  std::free(block);
  return nullptr;
}

LuaState::LuaState(int64_t max_bytes)
    : budget_(std::make_unique<Budget>(Budget{.max = static_cast<size_t>(max_bytes)})),
      state_(lua_newstate(&allocate, budget_.get())) {
  lua_State* L = state_.get();
  if (L == nullptr) fail(ExitCode::kFailure, "[lua] not enough memory for a Lua state");
  const luaL_Reg libraries[] = {{"", luaopen_base},
                                {LUA_LOADLIBNAME, luaopen_package},
                                {LUA_TABLIBNAME, luaopen_table},
                                {LUA_STRLIBNAME, luaopen_string},
                                {LUA_MATHLIBNAME, luaopen_math},
                                {LUA_BITLIBNAME, luaopen_bit},
                                {LUA_DBLIBNAME, luaopen_debug}};
  for (const luaL_Reg& library : libraries) {
    lua_pushcfunction(L, library.func);
    lua_pushstring(L, library.name);
    call_lua(L, 1, 0);
  }
  replace_standard_functions(L);
  luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
  luaL_newmetatable(L, kErrorMeta);
  lua_pushcfunction(L, error_text);
  lua_setfield(L, -2, "__tostring");
  luaL_newmetatable(L, kArrayMeta);
  luaL_newmetatable(L, kExitCodes);
  set_field(L, "__mode", "k");
  lua_pushvalue(L, -1);
  lua_setmetatable(L, -2);
  lua_pop(L, 3);
}

void push_error(lua_State* L, const std::string& message, ExitCode code, const ErrorDetail& detail) {
  lua_createtable(L, 0, 6);
  set_field(L, "message", message);
  set_field(L, "code", detail.name.empty() ? code_name(code) : detail.name);
  if (!detail.hint.empty()) set_field(L, "hint", detail.hint);
  if (!detail.cause.empty()) set_field(L, "cause", detail.cause);
  lua_pushinteger(L, static_cast<int>(code));
  lua_setfield(L, -2, "exit");
  const std::string where = recipe_frame(L);
  if (!where.empty()) set_field(L, "where", where);
  luaL_getmetatable(L, kErrorMeta);
  lua_setmetatable(L, -2);
  set_exit(L, code);
}

std::optional<ExitCode> exit_of(lua_State* L, int index) {
  if (!lua_istable(L, index)) return {};
  lua_pushvalue(L, index);
  luaL_getmetatable(L, kExitCodes);
  lua_insert(L, -2);
  lua_rawget(L, -2);
  std::optional<ExitCode> code;
  if (lua_isnumber(L, -1)) code = static_cast<ExitCode>(lua_tointeger(L, -1));
  lua_pop(L, 2);
  return code;
}

void set_exit(lua_State* L, ExitCode code) {
  luaL_getmetatable(L, kExitCodes);
  lua_pushvalue(L, -2);
  lua_pushinteger(L, static_cast<int>(code));
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

std::string cause_text(const std::exception& error) {
  int status = 0;
  char* const name = abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &status);
  std::string text = fmt::format("{}: {}", name != nullptr ? name : typeid(error).name(), error.what());
  std::free(name);
  return text;
}

void call_lua(lua_State* L, int num_args, int num_results, bool trace) {
  const int handler = lua_gettop(L) - num_args;
  lua_pushcfunction(L, with_trace);
  lua_insert(L, handler);
  const int status = lua_pcall(L, num_args, num_results, handler);
  lua_remove(L, handler);
  if (status != 0) throw pop_error(L, trace);
}

void mark_array(lua_State* L) {
  luaL_getmetatable(L, kArrayMeta);
  lua_setmetatable(L, -2);
}

void push_json(lua_State* L, const Json& json) {
  luaL_checkstack(L, 4, "data too deep");
  switch (json.type()) {
    case Json::value_t::boolean: lua_pushboolean(L, json.get<bool>()); return;
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float: lua_pushnumber(L, json.get<double>()); return;
    case Json::value_t::string: {
      const auto& text = json.get_ref<const std::string&>();
      lua_pushlstring(L, text.data(), text.size());
      return;
    }
    case Json::value_t::array:
      lua_createtable(L, static_cast<int>(json.size()), 0);
      for (size_t i = 0; i < json.size(); ++i) {
        push_json(L, json[i]);
        lua_rawseti(L, -2, static_cast<int>(i + 1));
      }
      mark_array(L);
      return;
    case Json::value_t::object:
      lua_createtable(L, 0, static_cast<int>(json.size()));
      for (const auto& [key, value] : json.items()) {
        lua_pushlstring(L, key.data(), key.size());
        push_json(L, value);
        lua_rawset(L, -3);
      }
      return;
    default: lua_pushlightuserdata(L, nullptr);
  }
}

Json read_json(lua_State* L, int index) {
  return read_at(L, index < 0 ? lua_gettop(L) + index + 1 : index, 0);
}

}  // namespace tycho
