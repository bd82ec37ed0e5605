// Signal handlers. They touch nothing but atomics and async-signal-safe calls.
#include "host/signals.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string_view>

#include "bindings/define/watch.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr int64_t kImpatientNs = 2'000'000'000;

StopFlag g_stop{0};
std::atomic<int64_t> g_last_interrupt_ns{0};
std::atomic<bool> g_prompting{false}, g_live_view{false}, g_define_interrupted{false}, g_stops{false};
static_assert(StopFlag::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);

struct sigaction action_of(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  return action;
}

/// Sets the action of a signal, unless it is ignored. Returns the action before.
struct sigaction take(int number, const struct sigaction& action) {
  struct sigaction before = {};
  sigaction(number, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  return before;
}

/// Writes without waiting: a stopped reader must not delay the signal's work.
void say_on(int file, std::string_view text) {
  pollfd out = {file, POLLOUT, 0};
  if (poll(&out, 1, 0) <= 0) return;
  const ssize_t ignored = write(file, text.data(), text.size());
  static_cast<void>(ignored);
}

// Written while a live view is on the terminal: over its last line, which the next drawing puts back, so that
// the view does not move. One row at most.
void say_in_view(std::string_view text) {
  char row[256] = "\r\x1b[K";
  winsize size{};
  const size_t columns = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  const size_t head = std::strlen(row), length = std::min({text.size(), columns - 1, sizeof row - head - 1});
  std::memcpy(row + head, text.data(), length);
  row[head + length] = '\r';
  say_on(STDOUT_FILENO, {row, head + length + 1});
}

void say(std::string_view text) { say_on(STDERR_FILENO, text); }

void on_define_interrupt(int) {
  g_define_interrupted = true;
  if (!LuaWatch::interrupt()) _exit(static_cast<int>(ExitCode::kInterrupted));
}

void on_run_signal(int number) {
  int expected = 0;
  g_stop.compare_exchange_strong(expected, number);
  LuaWatch::interrupt();  // a callback that does not end must not delay the run's end
  if (number != SIGINT) return;
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t now_ns = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  const int64_t last_ns = g_last_interrupt_ns.exchange(now_ns);
  if (isatty(STDIN_FILENO) == 0) return;
  if (last_ns != 0 && now_ns - last_ns < kImpatientNs) {
    say("\ninterrupted twice: ended at once; the run can be resumed from its newest checkpoint\n");
    _exit(static_cast<int>(ExitCode::kInterrupted));
  }
  if (g_live_view)
    return say_in_view(" saving after this step, then stopping; Ctrl-C again within 2 s ends at once");
  say("\nsaving after this step, then stopping; Ctrl-C again within 2 s ends at once\n");
}

void on_wait_signal(int number) {
  int expected = 0;
  g_stop.compare_exchange_strong(expected, number);
}

void on_repl_interrupt(int) {
  g_stop = SIGINT;
  if (!LuaWatch::interrupt() && !g_prompting) _exit(static_cast<int>(ExitCode::kInterrupted));
}

}  // namespace

InterruptRepl::InterruptRepl(bool prompting) {
  g_stops = false;
  g_prompting = prompting;
  g_stop = 0;
  before_ = take(SIGINT, action_of(on_repl_interrupt));
}

InterruptRepl::~InterruptRepl() { sigaction(SIGINT, &before_, nullptr); }

StopFlag& InterruptRepl::stop() { return g_stop; }

StopWait::StopWait() {
  g_stop = 0;
  const struct sigaction action = action_of(on_wait_signal);
  for (size_t i = 0; i < kStopSignals.size(); ++i) before_[i] = take(kStopSignals[i], action);
}

StopWait::~StopWait() {
  for (size_t i = 0; i < kStopSignals.size(); ++i) sigaction(kStopSignals[i], &before_[i], nullptr);
  if (const int number = g_stop.exchange(0); number != 0 && std::uncaught_exceptions() == 0) raise(number);
}

StopFlag& StopWait::stop() { return g_stop; }

bool stop_was_requested() { return g_stops && g_stop != 0; }

bool take_interrupt() { return g_stop.exchange(0) != 0; }

InterruptLua::InterruptLua() {
  g_define_interrupted = false;
  before_ = take(SIGINT, action_of(on_define_interrupt));
}

InterruptLua::~InterruptLua() {
  sigaction(SIGINT, &before_, nullptr);
  if (!g_define_interrupted || std::uncaught_exceptions() > 0) return;
  std::fflush(nullptr);
  _exit(static_cast<int>(ExitCode::kInterrupted));
}

StopFlag& stop_on_signals(bool live_view) {
  g_live_view = live_view;
  g_stops = true;
  const struct sigaction action = action_of(on_run_signal);
  for (const int number : kStopSignals) take(number, action);
  return g_stop;
}

}  // namespace tycho
