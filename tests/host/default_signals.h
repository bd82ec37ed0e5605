// The signals of a test program as a terminal's shell leaves them.
#pragma once
#include <csignal>

#include "trainer/base/process/stop_signals.h"

namespace tycho {

/// A script that starts tests in the background has them ignore SIGINT, and programs leave it so.
inline const bool kDefaultSignals = [] {
  for (const int number : kStopSignals) std::signal(number, SIG_DFL);
  return true;
}();

}  // namespace tycho
