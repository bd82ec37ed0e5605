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
  double max_seconds = 10;         // in this thread's own time, so that a busy machine does not shorten it
  bool max_is_wall_clock = false;  // max_seconds is wall time, for code that others wait for
  int64_t max_bytes = kLuaBytes;   // Lua's own memory that is in use after a collection
  double grace_s = 0;              // code that ends within this wall time is not interrupted
  double exit_s = 30;              // code that still runs this long after it was stopped ends the process
  double warn_s = kNever_s;        // code that runs this long is reported through `warn`
  const char* what = "Lua code";   // name of the code in the report
  const char* bytes_hint = "";     // text about the key that sets max_bytes
  const std::function<void(const std::string& text)>* warn = nullptr;  // on this thread; must not use Lua
};

/// Ends Lua code on this state, during its lifetime, with an error object when a limit is passed (kRecipe) or
/// when interrupt() was called (kInterrupted, "interrupted at file:line"). The standard library's own frames
/// get two more seconds, so that reports are still written; every other chunk ends at once, wherever its text
/// came from. Used on the thread that runs Lua. A nested watch takes the place of the outer one until it
/// ends, and passes an interrupt on to it.
class LuaWatch {
 public:
  LuaWatch(lua_State* L, const LuaLimits& limits);
  ~LuaWatch();
  LuaWatch(const LuaWatch&) = delete;
  LuaWatch& operator=(const LuaWatch&) = delete;

  /// Returns true when the code took longer than warn_s.
  bool was_named() const { return code_.is_named; }

  /// Asks the watched Lua code to end. Safe in a signal handler. Returns false when no Lua code is watched.
  static bool interrupt();
  /// Makes the watched code check its limits at its next instruction. Safe in a signal handler and in an
  /// allocator, on the thread that runs Lua.
  static void look_soon();

  /// Counts steps of a long C function as instructions of the Lua code that called it, and ends that code
  /// like the hook does. The caller's frames must not need destructors.
  static void spend(lua_State* L, int64_t steps);

  /// Marks, during its lifetime, that the watched code waits for the engine: it need not end until the engine
  /// returns.
  class EngineCall {
   public:
    EngineCall();
    ~EngineCall();
    EngineCall(const EngineCall&) = delete;
    EngineCall& operator=(const EngineCall&) = delete;

   private:
    WatchedCode* code_;
  };

  /// Stops the clocks of all watched code during its lifetime, while a person reads and types.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  };

 private:
  enum class Limit { kNone, kInterrupted, kBytes, kTime, kDepth };
  Limit passed(lua_State* L, bool too_deep);
  bool uses_too_much(lua_State* L) const;
  /// Returns true while host code may continue in order to report a passed limit.
  bool may_report() const;
  /// Starts the time for a report when this limit was not passed before. Returns may_report().
  bool begin_report(Limit limit);
  void warn(lua_State* L);
  /// Returns the time that max_seconds limits.
  double spent_s() const;
  void push_stop(lua_State* L, Limit limit, const lua_Debug* frame);
  static void on_tick(lua_State* L, lua_Debug* frame);
  static void set_hook(lua_State* L);
  LuaWatch* outer_;
  lua_State* state_;
  LuaLimits limits_;
  int64_t instructions_ = 0;
  Limit stopped_by_ = Limit::kNone;  // first passed limit of those that stay passed
  bool was_stopped_ = false;         // recipe code may catch the error and continue
  std::string first_stop_;           // file:line of the first stop; "" when no users' code was visible
  WatchedCode code_;
  double start_cpu_s_;
  Limit reported_ = Limit::kNone;  // the newest limit that was passed,
  double stopped_s_ = -kNever_s;   // and when, in seconds since the start
};

/// Lua function: (fn, max_instructions, max_seconds) -> results of pcall(fn), under limits of its own.
int call_limited(lua_State* L);

}  // namespace tycho
