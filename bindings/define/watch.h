// Keeps Lua interruptible: Ctrl-C and runaway loops end it at the next instruction of recipe code.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <lua.hpp>
#include <string>

#include "bindings/define/watchdog.h"

namespace tycho {

inline constexpr int64_t kLuaBytes = int64_t{256} << 20;
inline constexpr double kNever_s = std::numeric_limits<double>::infinity();

struct LuaLimits {
  int64_t max_instructions = 100'000'000;
  double max_seconds = 10;         // of this thread's own time: a busy machine ends nothing sooner
  bool max_is_wall_clock = false;  // max_seconds is, for code that others wait for
  int64_t max_bytes = kLuaBytes;   // of Lua's own memory that is still in use after a collection
  double grace_s = 0;              // code that ends this soon, by the wall clock, is not interrupted
  double exit_s = 30;              // code that runs this long after it was stopped ends the process
  double warn_s = kNever_s;        // code that runs this long is reported, by `warn`
  const char* what = "Lua code";   // what runs, for the report
  const char* bytes_hint = "";     // what sets max_bytes
  const std::function<void(const std::string& text)>* warn = nullptr;  // on this thread; must not use Lua
};

/// While one lives, Lua code on this state ends with an error object when a limit is passed (kRecipe) or when
/// interrupt() was called (kInterrupted, "interrupted at file:line"). The standard library's own frames are
/// not cut for two seconds more, so that reports are still written; every other chunk is, wherever its text
/// came from. On the thread that runs Lua; one that begins while another lives takes its place until it ends,
/// and hands an interrupt on to it.
class LuaWatch {
 public:
  LuaWatch(lua_State* L, const LuaLimits& limits);
  ~LuaWatch();
  LuaWatch(const LuaWatch&) = delete;
  LuaWatch& operator=(const LuaWatch&) = delete;

  /// Whether the code took longer than warn_s.
  bool was_named() const { return code_.is_named; }

  /// Asks the watched Lua code to end. Safe in a signal handler. False when no Lua code is watched.
  static bool interrupt();
  /// The watched code looks at its limits at its next instruction. Safe in a signal handler and in an
  /// allocator, on the thread that runs Lua.
  static void look_soon();

  /// For functions in C that can take long: counts steps of theirs as instructions of the Lua code that
  /// called them, and ends that as the hook does. The caller's frames need no destructors.
  static void spend(lua_State* L, int64_t steps);

  /// While one lives, the watched code waits for the engine: it does not have to end until that returns.
  class EngineCall {
   public:
    EngineCall();
    ~EngineCall();
    EngineCall(const EngineCall&) = delete;
    EngineCall& operator=(const EngineCall&) = delete;

   private:
    WatchedCode* code_;
  };

 private:
  enum class Limit { kNone, kInterrupted, kBytes, kTime, kDepth };
  Limit passed(lua_State* L, bool too_deep);
  bool uses_too_much(lua_State* L) const;
  /// Whether host code may go on to report that a limit was passed.
  bool may_report() const;
  /// The same, counted from now when this limit was not passed before.
  bool begin_report(Limit limit);
  void warn(lua_State* L);
  /// What max_seconds limits.
  double spent_s() const;
  void push_stop(lua_State* L, Limit limit, const lua_Debug* frame);
  static void on_tick(lua_State* L, lua_Debug* frame);
  static void set_hook(lua_State* L);
  LuaWatch* outer_;
  lua_State* state_;
  LuaLimits limits_;
  int64_t instructions_ = 0;
  Limit stopped_by_ = Limit::kNone;  // the first limit of those that hold until the end
  bool was_stopped_ = false;         // recipe code may swallow the error and go on
  std::string first_stop_;           // file:line where that was; "" when no code of people's was to be seen
  WatchedCode code_;
  double start_cpu_s_;
  Limit reported_ = Limit::kNone;  // the newest limit that was passed,
  double stopped_s_ = -kNever_s;   // and when, in seconds since the start
};

/// For Lua: (fn, max_instructions, max_seconds) -> what pcall(fn) gives, under limits of its own.
int call_limited(lua_State* L);

}  // namespace tycho
