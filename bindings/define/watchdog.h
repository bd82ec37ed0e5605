// Looks at the Lua code that runs from a thread of its own: what takes long is named, what passes its limit
// inside long functions is stopped as soon as they return, and what never ends ends the process. Needs no
// Lua.
#pragma once
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <optional>

namespace tycho {

/// Running Lua code, as its watchdog sees it. Members without a comment belong to the thread that runs it.
struct WatchedCode {
  using Time = std::chrono::steady_clock::time_point;
  pthread_t thread = pthread_self();
  Time start = std::chrono::steady_clock::now();
  double max_wall_s = 0;        // limit of the wall time since `start`
  double max_thread_cpu_s = 0;  // limit of the time of its thread
  double warn_s = 0;            // it is reported after this time
  double exit_s = 0;            // the process ends this long after the code should have ended
  const char* what = "";        // "Lua code", "batch_end of \"spike\""; must outlive it
  const std::atomic<bool>* interrupted = nullptr;  // asks it to end at once; must outlive it
  std::atomic<int> engine_calls{0};  // above 0 while it waits for the engine, which no limit of Lua ends
  std::atomic<bool> wants_warning{false};  // set by the watchdog; cleared by the code that warns
  std::atomic<bool> is_named{false};       // true once wants_warning was set

  // Used by the watchdog's thread.
  bool is_named_bluntly = false;
  std::optional<Time> named_at, over_since;
};

/// Sets the code to watch; null for none. Callable from any thread.
void set_watched(WatchedCode* code);

/// Sets the function called in the handler of the signal (SIGURG, which has no other effect) that tells a
/// thread to check its code's limits now. Call once, before set_watched.
void set_nudge(void (*nudge)());

}  // namespace tycho
