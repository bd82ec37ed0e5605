// Signals of this process as a file descriptor to poll.
#pragma once
#include <sys/signalfd.h>

#include <csignal>
#include <optional>
#include <vector>

namespace tycho {

/// While it lives, these signals do nothing by themselves; they are kept for next(). Those that are ignored
/// stay ignored. On a process of one thread.
class SignalQueue {
 public:
  /// Throws Error (kFailure).
  explicit SignalQueue(const std::vector<int>& signals);
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  /// Readable when next() has one.
  int file() const { return file_; }
  /// The oldest; nothing when none came. Never waits.
  std::optional<signalfd_siginfo> next();

 private:
  sigset_t before_ = {};
  int file_ = -1;
};

}  // namespace tycho
