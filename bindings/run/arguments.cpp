// Checks arguments.
#include "bindings/run/arguments.h"

#include "bindings/run/objects.h"
#include "trainer/base/nearest.h"

namespace tycho {
namespace {

constexpr double kMaxExact = 0x1p53;

[[noreturn]] void refuse(const std::string& call, const Arg& arg, const std::string& wanted,
                         const std::string& given) {
  throw ScriptError("E_ARGUMENT", fmt::format("{}: {} expects {}, got {}", call, arg.name, wanted, given),
                    arg.doc);
}

std::string given_text(lua_State* L, int index) {
  switch (lua_type(L, index)) {
    case LUA_TNONE:
    case LUA_TNIL: return "nothing";
    case LUA_TNUMBER: return fmt::format("{}", lua_tonumber(L, index));
    case LUA_TSTRING: return fmt::format("\"{:.40}\"", lua_tostring(L, index));
    case LUA_TBOOLEAN: return lua_toboolean(L, index) != 0 ? "true" : "false";
    default: return std::string("a ") + luaL_typename(L, index);
  }
}

std::string number_wanted(const Arg& arg) {
  const char* kind = arg.kind == Arg::Kind::kInteger ? "a whole number" : "a number";
  if (arg.low == -HUGE_VAL && arg.high == HUGE_VAL) return kind;
  if (arg.high == HUGE_VAL) return fmt::format("{} of {} or more", kind, arg.low);
  return fmt::format("{} from {} to {}", kind, arg.low, arg.high);
}

void check_number(lua_State* L, int index, const std::string& call, const Arg& arg) {
  const bool is_number = lua_type(L, index) == LUA_TNUMBER;
  const double x = is_number ? lua_tonumber(L, index) : NAN;
  const bool whole = arg.kind != Arg::Kind::kInteger || (x == std::floor(x) && std::abs(x) <= kMaxExact);
  if (!is_number || !std::isfinite(x) || !whole || x < arg.low || x > arg.high)
    refuse(call, arg, number_wanted(arg), given_text(L, index));
}

void check_tokens(lua_State* L, int index, const std::string& call, const Arg& arg) {
  if (lua_type(L, index) == LUA_TSTRING) return;
  const char* wanted = "text or a list of token ids";
  if (!lua_istable(L, index)) refuse(call, arg, wanted, given_text(L, index));
  for (size_t i = 1; i <= lua_objlen(L, index); ++i) {
    lua_rawgeti(L, index, static_cast<int>(i));
    const double id = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : NAN;
    if (!(id >= 0 && id <= 0x7fffffff && id == std::floor(id)))
      refuse(call, arg, wanted, fmt::format("{} at position {}", given_text(L, -1), i));
    lua_pop(L, 1);
  }
}

void check_value(lua_State* L, int index, const std::string& call, const Arg& arg);

void check_options(lua_State* L, int index, const std::string& call, const Arg& arg) {
  if (!lua_istable(L, index)) refuse(call, arg, "a table of options", given_text(L, index));
  std::vector<std::string> names;
  for (const Arg& key : arg.keys) names.emplace_back(key.name);
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    const std::string name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : given_text(L, -2);
    const Arg* known = nullptr;
    for (const Arg& key : arg.keys)
      if (name == key.name) known = &key;
    if (known == nullptr)
      throw ScriptError("E_ARGUMENT",
                        fmt::format("{}: no option {}{}", call, name, did_you_mean(name, names)),
                        fmt::format("options: {}", fmt::join(names, ", ")));
    check_value(L, lua_gettop(L), call, *known);
  }
}

void check_duration(lua_State* L, int index, const std::string& call, const Arg& arg) {
  const char* wanted = "a duration such as \"100ba\", \"2ep\" or \"1e6tok\"";
  if (lua_type(L, index) != LUA_TSTRING) refuse(call, arg, wanted, given_text(L, index));
  try {
    if (Duration::parse(lua_tostring(L, index)).value > 0) return;
  } catch (const Error&) {  // said below
  }
  refuse(call, arg, wanted, given_text(L, index));
}

void check_value(lua_State* L, int index, const std::string& call, const Arg& arg) {
  luaL_checkstack(L, 4, "arguments");
  if (lua_isnoneornil(L, index)) {
    if (!arg.optional) refuse(call, arg, "a value", "nothing");
    return;
  }
  switch (arg.kind) {
    case Arg::Kind::kInteger:
    case Arg::Kind::kNumber: return check_number(L, index, call, arg);
    case Arg::Kind::kAnyNumber:
      if (lua_type(L, index) != LUA_TNUMBER) refuse(call, arg, "a number", given_text(L, index));
      return;
    case Arg::Kind::kText:
      if (lua_type(L, index) != LUA_TSTRING) refuse(call, arg, "text", given_text(L, index));
      return;
    case Arg::Kind::kBoolean:
      if (!lua_isboolean(L, index)) refuse(call, arg, "true or false", given_text(L, index));
      return;
    case Arg::Kind::kDuration: return check_duration(L, index, call, arg);
    case Arg::Kind::kTokens: return check_tokens(L, index, call, arg);
    case Arg::Kind::kOptions: return check_options(L, index, call, arg);
    case Arg::Kind::kAny: return;
  }
}

}  // namespace

void check_arguments(lua_State* L, const Class& object, const Method& method) {
  const std::string call = fmt::format("{}:{}", object.name, method.name);
  const auto num_args = static_cast<int>(method.args.size());
  if (lua_gettop(L) - 1 > num_args)
    throw ScriptError("E_ARGUMENT",
                      fmt::format("{} takes {} argument{}, got {}", call, num_args, num_args == 1 ? "" : "s",
                                  lua_gettop(L) - 1),
                      fmt::format("{}:{}", object.name, signature(method)));
  for (int i = 0; i < num_args; ++i) check_value(L, i + 2, call, method.args[static_cast<size_t>(i)]);
}

}  // namespace tycho
