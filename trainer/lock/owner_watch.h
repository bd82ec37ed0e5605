// Tells a process beside the run whether the owner of the run folder is gone. Torch-free.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "trainer/lock/run_lock.h"

namespace tycho {

/// Reads the LOCK of a run without taking it. Used by one thread.
class OwnerWatch {
 public:
  /// `silence_s` is how long a LOCK must stay unchanged before its owner counts as gone. Within it a killed
  /// run can be started again.
  explicit OwnerWatch(const std::string& run_dir, double silence_s = RunLock::kStale_s);

  struct Absence {
    std::string owner;      // for messages: "process 4711 on host n3"
    bool is_final = false;  // the LOCK has not changed for silence_s
  };
  /// Returns the absence of the owner, if any. An owner on this machine is absent when its process is gone or
  /// has left the folder, one on another machine when its LOCK shows no heartbeat for silence_s. Returns
  /// nullopt while the owner lives, when there is none, and when the LOCK cannot be read.
  std::optional<Absence> look();
  /// Returns true if the last look() saw that the owner lives: its process on this machine, or a heartbeat
  /// since the look before.
  bool is_alive() const { return is_alive_; }

 private:
  const std::string path_;
  const double silence_s_;
  std::string text_;  // at the last look()
  bool is_alive_ = false;
  std::chrono::steady_clock::time_point unchanged_since_;
};

/// Returns when nobody owns the run folder any longer, without taking it. Throws Error (kFolderOwned) when
/// its owner lives. An owner on another machine is watched for `silence_s`; `waiting` is then called once
/// with a line for display that says so.
void wait_until_unowned(const std::string& run_dir, const std::function<void(const std::string&)>& waiting,
                        double silence_s = RunLock::kStale_s);

}  // namespace tycho
