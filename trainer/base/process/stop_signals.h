// The signals that ask a run to save and end.
#pragma once
#include <algorithm>
#include <array>
#include <csignal>

namespace tycho {

/// Signals that end a run in good order. submitit sends SIGUSR2 before a time limit; SIGHUP comes when a
/// terminal closes, SIGXCPU when the CPU time of `ulimit -t` is used up.
inline constexpr std::array<int, 6> kStopSignals = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP, SIGXCPU};

/// Returns true for the exit code of a run that one of these signals ended in good order: 128 + its number.
constexpr bool is_stop_code(int exit_code) {
  return std::any_of(kStopSignals.begin(), kStopSignals.end(),
                     [=](int number) { return exit_code == 128 + number; });
}

}  // namespace tycho
