// One thread for all Lua code of the process, started with the first code that is watched.
#include "bindings/define/watchdog.h"

#include <fmt/format.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr auto kLook = std::chrono::milliseconds(200);
constexpr double kUntilBlunt_s = 1;  // code in a long function of C cannot say itself where it is

std::atomic<void (*)()> g_nudge{nullptr};

struct Watchdog {
  std::mutex mutex;  // held while the code's thread is sent a signal: it runs that code until then
  WatchedCode* code = nullptr;
  bool is_running = false;
};

/// Returns the only watchdog, which is never destroyed: its thread runs until the process ends.
Watchdog& watchdog() {
  static Watchdog* const one = new Watchdog;
  return *one;
}

double seconds(WatchedCode::Time from, WatchedCode::Time to) {
  return std::chrono::duration<double>(to - from).count();
}

double thread_cpu_s(pthread_t thread) {
  clockid_t clock = 0;
  timespec time{};
  if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void say(const std::string& text) {
  pollfd out = {STDERR_FILENO, POLLOUT, 0};
  if (poll(&out, 1, 100) <= 0) return;  // a reader that does not read must not keep this thread from its work
  const ssize_t ignored = write(STDERR_FILENO, text.data(), text.size());
  static_cast<void>(ignored);
}

void name_what_takes_long(WatchedCode& code, WatchedCode::Time now) {
  const double taken_s = seconds(code.start, now);
  if (!code.named_at && taken_s >= code.warn_s) {
    code.named_at = now;
    code.wants_warning = code.is_named = true;
    if (code.engine_calls == 0) pthread_kill(code.thread, SIGURG);
  }
  if (!code.wants_warning || code.is_named_bluntly || seconds(*code.named_at, now) < kUntilBlunt_s) return;
  code.is_named_bluntly = true;
  say(fmt::format("warning: {} has been running for {:.0f} s, now in {}\n", code.what, taken_s,
                  code.engine_calls > 0 ? "a call of the engine" : "one long call of Lua's library"));
}

void end_what_does_not_end(WatchedCode& code, WatchedCode::Time now) {
  const bool is_over = *code.interrupted || seconds(code.start, now) > code.max_wall_s ||
                       thread_cpu_s(code.thread) > code.max_thread_cpu_s;
  if (!is_over || code.engine_calls > 0) return code.over_since.reset();
  if (!code.over_since) code.over_since = now;
  pthread_kill(code.thread, SIGURG);
  const double over_s = seconds(*code.over_since, now);
  if (over_s < code.exit_s) return;
  const bool interrupted = *code.interrupted;
  say(fmt::format("[lua] {} still runs {:.0f} s after it was {}, so the process ends now\n", code.what,
                  over_s, interrupted ? "interrupted" : "stopped at its time limit"));
  _exit(static_cast<int>(interrupted ? ExitCode::kInterrupted : ExitCode::kRecipe));
}

[[noreturn]] void look_forever() {
  for (;;) {
    std::this_thread::sleep_for(kLook);
    Watchdog& one = watchdog();
    const std::lock_guard lock(one.mutex);
    if (one.code == nullptr) continue;
    const auto now = std::chrono::steady_clock::now();
    name_what_takes_long(*one.code, now);
    end_what_does_not_end(*one.code, now);
  }
}

/// Starts the thread with all signals blocked: signals of the process belong to the threads that handle them.
void start(Watchdog& one) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread(look_forever).detach();
    one.is_running = true;
  } catch (const std::system_error&) {
    // No more threads may be started: the hook, which counts instructions, still ends Lua code.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void prepare() {
  struct sigaction action = {};
  action.sa_handler = [](int) {
    if (void (*const nudge)() = g_nudge; nudge != nullptr) nudge();
  };
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGURG, &action, nullptr);
  // A forked process has the data of the thread and not the thread.
  pthread_atfork([] { watchdog().mutex.lock(); }, [] { watchdog().mutex.unlock(); },
                 [] {
                   watchdog().is_running = false;
                   watchdog().mutex.unlock();
                 });
}

}  // namespace

void set_nudge(void (*nudge)()) { g_nudge = nudge; }

void set_watched(WatchedCode* code) {
  Watchdog& one = watchdog();
  static const bool prepared = (prepare(), true);
  static_cast<void>(prepared);
  const std::lock_guard lock(one.mutex);
  one.code = code;
  if (code != nullptr && !one.is_running) start(one);
}

}  // namespace tycho
