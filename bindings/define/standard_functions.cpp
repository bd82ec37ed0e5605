// The functions. What lives in these frames needs no destructor: errors of Lua and the watch leave them.
#include "bindings/define/standard_functions.h"

#include <algorithm>

#include "bindings/define/c_stack.h"
#include "bindings/define/watch.h"

namespace tycho {
namespace {

// table.sort: a merge sort, so equal elements keep their order and a comparison that contradicts itself ends.

constexpr int kTable = 1, kLess = 2, kScratch = 3;  // stack indices
constexpr int64_t kStepsOfOneReport = 10'000;
constexpr int64_t kStepsOfAComparison = 3;

struct Sorter {
  lua_State* L;
  bool has_less;
  int64_t steps = 0;

  void get(int table, int i) const { lua_rawgeti(L, table, i + 1); }

  /// Returns true when element i sorts before element j.
  bool less(int i, int j) {
    steps += kStepsOfAComparison;
    if (steps >= kStepsOfOneReport) {
      LuaWatch::spend(L, steps);
      steps = 0;
    }
    if (has_less) lua_pushvalue(L, kLess);
    get(kTable, i);
    get(kTable, j);
    bool is_less = false;
    if (has_less) {
      lua_call(L, 2, 1);
      is_less = lua_toboolean(L, -1) != 0;
      lua_pop(L, 1);
    } else {
      is_less = lua_lessthan(L, -2, -1) != 0;
      lua_pop(L, 2);
    }
    return is_less;
  }

  /// Merges the sorted ranges [begin, middle) and [middle, end) in the scratch table.
  void merge(int begin, int middle, int end) {
    int left = begin, right = middle;
    const bool is_sorted = middle >= end || !less(middle, middle - 1);
    for (int out = begin; out < end; ++out) {
      const bool from_left = left < middle && (right >= end || is_sorted || !less(right, left));
      get(kTable, from_left ? left++ : right++);
      lua_rawseti(L, kScratch, out + 1);
    }
  }

  // The table changes only between passes: an error in a comparison leaves all elements in it.
  void sort(int count) {
    for (int64_t width = 1; width < count; width *= 2) {
      for (int64_t begin = 0; begin < count; begin += 2 * width)
        merge(static_cast<int>(begin), static_cast<int>(std::min<int64_t>(begin + width, count)),
              static_cast<int>(std::min<int64_t>(begin + 2 * width, count)));
      for (int i = 0; i < count; ++i) {
        get(kScratch, i);
        lua_rawseti(L, kTable, i + 1);
      }
    }
  }
};

int sort(lua_State* L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  const bool has_less = !lua_isnoneornil(L, 2);
  if (has_less) luaL_checktype(L, 2, LUA_TFUNCTION);
  ensure_c_stack(L);
  const auto count = static_cast<int>(std::min<size_t>(lua_objlen(L, 1), 1u << 30));
  lua_settop(L, 2);
  luaL_checkstack(L, 8, "table.sort");
  lua_createtable(L, count, 0);
  Sorter{L, has_less}.sort(count);
  return 0;
}

// coroutine.resume and wrap. Lua's own use the C stack too, and look for its end only within one coroutine.

/// Returns why a coroutine cannot be resumed, or null.
const char* not_resumable(lua_State* L, lua_State* coroutine) {
  lua_Debug frame;
  if (coroutine == L) return "cannot resume non-suspended coroutine";
  const int status = lua_status(coroutine);
  if (status == LUA_YIELD) return nullptr;
  if (status != 0) return "cannot resume dead coroutine";
  if (lua_getstack(coroutine, 0, &frame) > 0) return "cannot resume non-suspended coroutine";
  return lua_gettop(coroutine) == 0 ? "cannot resume dead coroutine" : nullptr;
}

/// Moves the arguments above `first` into the coroutine and runs it. Leaves its results, or the error, on top
/// of the stack, and returns their number, or -1.
int run(lua_State* L, lua_State* coroutine, int num_args) {
  ensure_c_stack(L);
  if (const char* why = not_resumable(L, coroutine)) {
    lua_pushstring(L, why);
    return -1;
  }
  if (lua_checkstack(coroutine, num_args) == 0) luaL_error(L, "too many arguments to resume");
  lua_xmove(L, coroutine, num_args);
  const int status = lua_resume(coroutine, num_args);
  if (status != 0 && status != LUA_YIELD) {
    luaL_checkstack(L, 1, "coroutine");
    lua_xmove(coroutine, L, 1);
    return -1;
  }
  const int count = lua_gettop(coroutine);
  luaL_checkstack(L, count + 1, "too many results to resume");
  lua_xmove(coroutine, L, count);
  return count;
}

/// resume(coroutine, ...) -> true, results | false, error
int resume(lua_State* L) {
  lua_State* const coroutine = lua_tothread(L, 1);
  luaL_argcheck(L, coroutine != nullptr, 1, "coroutine expected");
  const int count = run(L, coroutine, lua_gettop(L) - 1);
  lua_pushboolean(L, count >= 0 ? 1 : 0);
  lua_insert(L, -(count >= 0 ? count : 1) - 1);
  return (count >= 0 ? count : 1) + 1;
}

/// The function that wrap returns. The coroutine is its upvalue; an error of the coroutine is raised here.
int call_wrapped(lua_State* L) {
  lua_State* const coroutine = lua_tothread(L, lua_upvalueindex(1));
  const int count = run(L, coroutine, lua_gettop(L));
  return count >= 0 ? count : lua_error(L);
}

/// wrap(function) -> function
int wrap(lua_State* L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_State* const coroutine = lua_newthread(L);
  lua_pushvalue(L, 1);
  lua_xmove(L, coroutine, 1);
  lua_pushcclosure(L, call_wrapped, 1);
  return 1;
}

void put(lua_State* L, const char* library, const char* name, lua_CFunction function) {
  lua_getglobal(L, library);
  lua_pushcfunction(L, function);
  lua_setfield(L, -2, name);
  lua_pop(L, 1);
}

}  // namespace

void replace_standard_functions(lua_State* L) {
  put(L, "table", "sort", sort);
  put(L, "coroutine", "resume", resume);
  put(L, "coroutine", "wrap", wrap);
}

}  // namespace tycho
