// Looks at the Lua code that runs from a thread of its own: what takes long is named, what passes its limit
// inside long functions is stopped as soon as they return, and what never ends ends the process. Needs no
// Lua.
#pragma once
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <optional>

namespace tycho {

/// Lua code that runs, as its watchdog sees it. Members without a remark belong to the thread that runs it.
struct WatchedCode {
  using Time = std::chrono::steady_clock::time_point;
  pthread_t thread = pthread_self();
  Time start = std::chrono::steady_clock::now();
  double max_wall_s = 0;                           // it is to end this long after `start`,
  double max_thread_cpu_s = 0;                     // or when its thread has used this much time
  double warn_s = 0;                               // it is named after this time
  double exit_s = 0;                               // the process ends this long after it was to end
  const char* what = "";                           // "Lua code", "batch_end of \"spike\""; outlives it
  const std::atomic<bool>* interrupted = nullptr;  // it is to end at once; outlives it
  std::atomic<int> engine_calls{0};        // above 0: it waits for the engine, which no limit of Lua ends
  std::atomic<bool> wants_warning{false};  // set by the watchdog; cleared by who gives the warning
  std::atomic<bool> is_named{false};       // whether it was set, ever

  // Of the watchdog's thread.
  bool is_named_bluntly = false;
  std::optional<Time> named_at, over_since;
};

/// What the watchdog looks at from now on; null for nothing. Any thread.
void set_watched(WatchedCode* code);

/// What a thread is sent (SIGURG, which does nothing by itself) when its code should look at its limits now;
/// called in the signal handler. Set once, before set_watched.
void set_nudge(void (*nudge)());

}  // namespace tycho
