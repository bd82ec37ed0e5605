// Keeps Lua interruptible: Ctrl-C and runaway loops end it at the next instruction of recipe code.
#pragma once
#include <chrono>
#include <cstdint>
#include <lua.hpp>
#include <string>

namespace tycho {

struct LuaLimits {
  int64_t max_instructions = 100'000'000;
  double max_seconds = 10;               // of this thread's own time: a busy machine ends nothing sooner
  bool max_is_wall_clock = false;        // max_seconds is, for code that others wait for
  int64_t max_bytes = int64_t{1} << 30;  // of Lua's own memory
  double grace_s = 0;                    // code that ends this soon, by the wall clock, is not interrupted
};

/// While one lives, Lua code on this state ends with an error object when a limit is passed (kRecipe) or when
/// interrupt() was called (kInterrupted, "interrupted at file:line"). The standard library's own frames are
/// not cut, so that reports are still written; every other chunk is, wherever its text came from. On the
/// thread that runs Lua; one that begins while another lives takes its place until it ends, and hands an
/// interrupt on to it.
class LuaWatch {
 public:
  LuaWatch(lua_State* L, const LuaLimits& limits);
  ~LuaWatch();
  LuaWatch(const LuaWatch&) = delete;
  LuaWatch& operator=(const LuaWatch&) = delete;

  /// Asks the watched Lua code to end. Safe in a signal handler. False when no Lua code is watched.
  static bool interrupt();

  /// For functions in C that can take long: counts steps of theirs as instructions of the Lua code that
  /// called them, and ends that as the hook does. The caller's frames need no destructors.
  static void spend(lua_State* L, int64_t steps);

 private:
  enum class Limit { kNone, kInterrupted, kBytes, kTime, kDepth };
  Limit passed(lua_State* L, bool too_deep) const;
  /// What max_seconds limits.
  double spent_s() const;
  void raise(lua_State* L, Limit limit, const lua_Debug* frame);
  static void on_tick(lua_State* L, lua_Debug* frame);
  static void set_hook(lua_State* L);
  static void tick_always(lua_State* L);
  LuaWatch* outer_;
  lua_State* state_;
  LuaLimits limits_;
  int64_t instructions_ = 0;
  std::string first_stop_;  // file:line where a limit was passed; recipe code may swallow the error and go on
  std::chrono::steady_clock::time_point start_;
  double start_cpu_s_;
};

/// For Lua: (fn, max_instructions, max_seconds) -> what pcall(fn) gives, under limits of its own.
int call_limited(lua_State* L);

}  // namespace tycho
