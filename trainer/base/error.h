// Tycho's only exception type, and the check that throws it.
#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace tycho {

/// Exit codes for the scheduler: 1..127 are permanent, 128 and above mean "start me again".
/// docs/troubleshooting.md has the table for users.
enum class ExitCode : int {
  kOk = 0,
  kFailure = 1,
  kUsage = 2,
  kRecipe = 10,
  kTopology = 11,
  kUnusable = 12,  // data or checkpoint
  kFolderOwned = 13,
  kNumerics = 14,  // NaN, Inf, out of memory
  kStorage = 15,
  kNoProgress = 93,
  // 128 + the signal: a run saves and ends in good order, as stop_signals.h lists.
  kHungUp = 129,       // SIGHUP
  kInterrupted = 130,  // SIGINT, Ctrl-C
  kPreempted = 138,    // SIGUSR1
  kTimeIsUp = 140,     // SIGUSR2, which submitit sends before a time limit
  kReaderGone = 141,   // SIGPIPE, what a shell shows when a pipe's reader left: nothing to resume
  kTerminated = 143,   // SIGTERM
  kCpuTimeIsUp = 152,  // SIGXCPU
};

/// Thrown for every error that a user can cause. The text is "[place] expected …, got …" and says what to do
/// next. Only host/main.cpp turns an Error into an exit code.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, ExitCode code = ExitCode::kFailure)
      : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// Throws an Error with a formatted message: fail(ExitCode::kStorage, "[checkpoint] cannot write {}", path).
template <class... Args>
[[noreturn]] void fail(ExitCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...), code);
}

}  // namespace tycho

/// Throws an Error (kFailure) unless the condition holds: TYCHO_CHECK(n > 0, "[packing] sequence length must
/// be positive, got {}", n)
#define TYCHO_CHECK(condition, ...)                                            \
  do {                                                                         \
    if (!(condition)) ::tycho::fail(::tycho::ExitCode::kFailure, __VA_ARGS__); \
  } while (false)
