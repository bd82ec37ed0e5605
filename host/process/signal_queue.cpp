// Blocks signals and reads them from a file of the kernel.
#include "host/process/signal_queue.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "trainer/base/error.h"

namespace tycho {

SignalQueue::SignalQueue(const std::vector<int>& signals) {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int number : signals) {
    struct sigaction action = {};
    sigaction(number, nullptr, &action);  // blocking an ignored signal would bring it here
    if (action.sa_handler != SIG_IGN) sigaddset(&taken, number);
  }
  sigprocmask(SIG_BLOCK, &taken, &before_);
  file_ = signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC);
  if (file_ >= 0) return;
  sigprocmask(SIG_SETMASK, &before_, nullptr);
  fail(ExitCode::kFailure, "[launch] cannot wait for signals: {}", std::strerror(errno));
}

SignalQueue::~SignalQueue() {
  close(file_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<signalfd_siginfo> SignalQueue::next() {
  signalfd_siginfo info = {};
  if (read(file_, &info, sizeof info) != sizeof info) return std::nullopt;
  return info;
}

}  // namespace tycho
