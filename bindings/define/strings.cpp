// string.find, match, gmatch and gsub. What lives in these frames needs no destructor: replacements, the
// watch and malformed patterns leave them by Lua errors.
#include "bindings/define/strings.h"

#include <cstring>
#include <type_traits>

#include "bindings/define/c_stack.h"
#include "bindings/define/pattern.h"
#include "bindings/define/watch.h"

namespace tycho {
namespace {

constexpr size_t kShort = 24;  // items of a pattern that needs no memory of Lua's

void spend(void* L, int64_t steps) { LuaWatch::spend(static_cast<lua_State*>(L), steps); }

std::string_view text_argument(lua_State* L, int index) {
  size_t size = 0;
  const char* text = luaL_checklstring(L, index, &size);
  return {text, size};
}

/// Space for the items of a short pattern; declared in each function, after the arguments are checked.
struct Room {
  Pattern::Item items[kShort];
};
static_assert(std::is_trivially_destructible_v<Pattern> && std::is_trivially_destructible_v<Room>);

Pattern read_pattern(lua_State* L, std::string_view text, bool anchors, Room& room) {
  const size_t count = Pattern::num_items(text);
  Pattern::Item* items = room.items;
  // Stays on the stack below the results until the function returns.
  if (count > kShort) items = static_cast<Pattern::Item*>(lua_newuserdata(L, count * sizeof *items));
  return {text, anchors, items, {L, spend}};
}

const char* match_or_fail(lua_State* L, Pattern& pattern, std::string_view subject, const char* at) {
  const char* const end = pattern.match(subject, at);
  if (pattern.error() != nullptr) luaL_error(L, "%s", pattern.error());
  return end;
}

/// Pushes a capture, from 0; for a pattern without captures the whole match.
void push_capture(lua_State* L, const Pattern& pattern, int index, std::string_view subject,
                  std::string_view match) {
  if (index >= pattern.num_captures()) {
    if (index != 0) luaL_error(L, "invalid capture index");
    return lua_pushlstring(L, match.data(), match.size());
  }
  const Pattern::Capture& capture = pattern.capture(index);
  if (capture.size == Pattern::kOpen) luaL_error(L, "unfinished capture");
  if (capture.size == Pattern::kPosition)
    return lua_pushinteger(L, static_cast<lua_Integer>(capture.begin - subject.data() + 1));
  lua_pushlstring(L, capture.begin, static_cast<size_t>(capture.size));
}

/// Pushes all captures, or the whole match when there are none and `whole`. Returns their number.
int push_captures(lua_State* L, const Pattern& pattern, std::string_view subject, std::string_view match,
                  bool whole) {
  const int count = pattern.num_captures() == 0 && whole ? 1 : pattern.num_captures();
  luaL_checkstack(L, count, "too many captures");
  for (int i = 0; i < count; ++i) push_capture(L, pattern, i, subject, match);
  return count;
}

/// Returns the offset where a search begins: `init` counts from 1, and from the end when it is negative.
size_t first_of(lua_State* L, int index, size_t size) {
  lua_Integer init = luaL_optinteger(L, index, 1);
  if (init < 0) init += static_cast<lua_Integer>(size) + 1;
  if (init <= 0) init = 1;
  return std::min(static_cast<size_t>(init - 1), size);
}

int push_range(lua_State* L, std::string_view subject, const char* begin, const char* end) {
  lua_pushinteger(L, begin - subject.data() + 1);
  lua_pushinteger(L, end - subject.data());
  return 2;
}

int find_plain(lua_State* L, std::string_view subject, size_t first, std::string_view wanted) {
  const char* const begin = subject.data() + first;
  const void* found = memmem(begin, subject.size() - first, wanted.data(), wanted.size());
  if (found == nullptr) return lua_pushnil(L), 1;
  const char* const at = static_cast<const char*>(found);
  return push_range(L, subject, at, at + wanted.size());
}

int search(lua_State* L, bool find) {
  const std::string_view subject = text_argument(L, 1), text = text_argument(L, 2);
  const size_t first = first_of(L, 3, subject.size());
  if (find && (lua_toboolean(L, 4) != 0 || text.find_first_of("^$*+?.([%-") == std::string_view::npos))
    return find_plain(L, subject, first, text);
  Room room;
  Pattern pattern = read_pattern(L, text, true, room);
  for (const char* at = subject.data() + first;; ++at) {
    const char* const end = match_or_fail(L, pattern, subject, at);
    if (end != nullptr) {
      const std::string_view match(at, static_cast<size_t>(end - at));
      if (!find) return push_captures(L, pattern, subject, match, true);
      const int pushed = push_range(L, subject, at, end);
      return pushed + push_captures(L, pattern, subject, match, false);
    }
    if (pattern.anchored() || at == subject.data() + subject.size()) return lua_pushnil(L), 1;
  }
}

int find(lua_State* L) { return search(L, true); }
int match(lua_State* L) { return search(L, false); }

/// The iterator of gmatch. Its upvalues are text, pattern and offset.
int next_match(lua_State* L) {
  const std::string_view subject = text_argument(L, lua_upvalueindex(1));
  Room room;
  Pattern pattern = read_pattern(L, text_argument(L, lua_upvalueindex(2)), false, room);
  auto first = static_cast<size_t>(lua_tonumber(L, lua_upvalueindex(3)));
  for (; first <= subject.size(); ++first) {
    const char* const at = subject.data() + first;
    const char* const end = match_or_fail(L, pattern, subject, at);
    if (end == nullptr) continue;
    const auto size = static_cast<size_t>(end - at);
    lua_pushnumber(L, static_cast<double>(first + std::max<size_t>(size, 1)));
    lua_replace(L, lua_upvalueindex(3));
    return push_captures(L, pattern, subject, {at, size}, true);
  }
  return 0;
}

int gmatch(lua_State* L) {
  text_argument(L, 1);
  text_argument(L, 2);
  lua_settop(L, 2);
  lua_pushnumber(L, 0);
  lua_pushcclosure(L, next_match, 3);
  return 1;
}

/// Adds the replacement text with %0 to %9 replaced.
void add_text(lua_State* L, luaL_Buffer* out, const Pattern& pattern, std::string_view subject,
              std::string_view match) {
  const std::string_view text = text_argument(L, 3);
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '%') {
      luaL_addchar(out, c);
    } else if (++i == text.size() || text[i] < '0' || text[i] > '9') {
      luaL_addchar(out, i == text.size() ? '\0' : text[i]);
    } else if (text[i] == '0') {
      luaL_addlstring(out, match.data(), match.size());
    } else {
      push_capture(L, pattern, text[i] - '1', subject, match);
      luaL_addvalue(out);
    }
  }
}

/// Adds the value of a table or function for the captures; nil and false keep the match.
void add_value(lua_State* L, luaL_Buffer* out, const Pattern& pattern, std::string_view subject,
               std::string_view match) {
  if (lua_istable(L, 3)) {
    push_capture(L, pattern, 0, subject, match);
    lua_gettable(L, 3);
  } else {
    lua_pushvalue(L, 3);
    lua_call(L, push_captures(L, pattern, subject, match, true), 1);
  }
  if (lua_toboolean(L, -1) == 0) {
    lua_pop(L, 1);
    return luaL_addlstring(out, match.data(), match.size());
  }
  if (lua_isstring(L, -1) == 0) luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
  luaL_addvalue(out);
}

int gsub(lua_State* L) {
  const std::string_view subject = text_argument(L, 1), text = text_argument(L, 2);
  const int kind = lua_type(L, 3);
  luaL_argcheck(L, kind == LUA_TNUMBER || kind == LUA_TSTRING || kind == LUA_TFUNCTION || kind == LUA_TTABLE,
                3, "string/function/table expected");
  const lua_Integer most = luaL_optinteger(L, 4, static_cast<lua_Integer>(subject.size()) + 1);
  const bool by_text = kind == LUA_TNUMBER || kind == LUA_TSTRING;
  if (!by_text) ensure_c_stack(L);
  Room room;
  Pattern pattern = read_pattern(L, text, true, room);
  const char* const last = subject.data() + subject.size();
  const char* at = subject.data();
  lua_Integer count = 0;
  luaL_Buffer out;
  luaL_buffinit(L, &out);
  while (count < most) {
    const char* const end = match_or_fail(L, pattern, subject, at);
    if (end != nullptr) {
      ++count;
      (by_text ? add_text : add_value)(L, &out, pattern, subject, {at, static_cast<size_t>(end - at)});
    }
    if (end != nullptr && end > at)
      at = end;
    else if (at < last)
      luaL_addchar(&out, *at++);
    else
      break;
    if (pattern.anchored()) break;
  }
  luaL_addlstring(&out, at, static_cast<size_t>(last - at));
  luaL_pushresult(&out);
  lua_pushinteger(L, count);
  return 2;
}

}  // namespace

void push_strings(lua_State* L) {
  const luaL_Reg functions[] = {{"find", find}, {"match", match}, {"gmatch", gmatch}, {"gsub", gsub}};
  lua_createtable(L, 0, 4);
  for (const luaL_Reg& function : functions) {
    lua_pushcfunction(L, function.func);
    lua_setfield(L, -2, function.name);
  }
}

}  // namespace tycho
