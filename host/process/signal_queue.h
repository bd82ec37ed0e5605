// Signals of this process as a file descriptor to poll.
#pragma once
#include <sys/signalfd.h>

#include <csignal>
#include <optional>
#include <vector>

namespace tycho {

/// Holds back these signals during its lifetime and queues them for next(). Ignored signals stay ignored.
/// Requires a process of one thread.
class SignalQueue {
 public:
  /// Throws Error (kFailure).
  explicit SignalQueue(const std::vector<int>& signals);
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  /// Returns a descriptor that is readable when next() has a signal.
  int file() const { return file_; }
  /// Returns the oldest signal; nullopt when there is none. Never waits.
  std::optional<signalfd_siginfo> next();

 private:
  sigset_t before_ = {};
  int file_ = -1;
};

}  // namespace tycho
