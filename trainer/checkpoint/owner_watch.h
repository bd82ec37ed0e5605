// Whether the process that owns a run folder is gone, as a process beside the run sees it. Torch-free.
#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "trainer/checkpoint/run_lock.h"

namespace tycho {

/// Reads the LOCK of a run and takes nothing. One thread calls it.
class OwnerWatch {
 public:
  /// `silence_s`: how long a LOCK must stay as it is before its owner counts as gone. This leaves a run that
  /// was killed the time to be started again.
  explicit OwnerWatch(const std::string& run_dir, double silence_s = RunLock::kStale_s);

  struct Absence {
    std::string owner;      // for messages: "process 4711 on host n3"
    bool is_final = false;  // the LOCK has not changed for silence_s
  };
  /// Looks now. An owner on this machine is absent when its process is gone or has left the folder, another
  /// one when its LOCK shows no heartbeat for silence_s. Nothing while the owner lives, when there is none,
  /// and for a LOCK that cannot be read.
  std::optional<Absence> look();

 private:
  const std::string path_;
  const double silence_s_;
  std::string text_;  // of the last look
  std::chrono::steady_clock::time_point unchanged_since_;
};

}  // namespace tycho
