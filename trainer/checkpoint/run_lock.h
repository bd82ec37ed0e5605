// Ownership of a run folder by one live process, through a LOCK file with a heartbeat. Torch-free.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "trainer/base/file_ops.h"

namespace tycho {

/// Held for the life of a run. <run_dir>/LOCK is one line of JSON that names the owner (owner.h), then a dot
/// for every heartbeat, then "released" when the owner left. A heartbeat is written through the file that the
/// owner opened, so one that comes late never marks the LOCK of its successor.
class RunLock {
 public:
  static constexpr double kStale_s = 60;
  /// The end of a LOCK whose owner left the folder.
  static constexpr std::string_view kReleased = "\nreleased\n";
  /// Called about once a second while a silent owner is watched, with a line for people that says what is
  /// waited for. What it throws ends the wait.
  using Waiting = std::function<void(const std::string& text)>;

  /// Takes the folder. A live owner is an Error (kFolderOwned) naming host, pid and job. An owner that left,
  /// that is dead (same boot, no such process), that is an earlier start of the same Slurm job, or that has
  /// not refreshed for `stale_s` seconds while we watched, is replaced and the epoch grows by one. Watching
  /// is needed only for an owner on another machine or one that was stopped. A LOCK that is not a file, or is
  /// a link, is an Error (kUnusable).
  RunLock(FileOps& files, const std::string& run_dir, double stale_s = kStale_s, Waiting waiting = {});
  ~RunLock();
  /// Grows each time the folder changes owner, above the epoch of every checkpoint in it; orders checkpoints
  /// of successive owners.
  int64_t epoch() const;
  /// Throws Error (kFolderOwned) when the file is no longer ours, kStorage when it cannot be read. From any
  /// thread.
  void check() const;
  /// The same, cheap enough for every write: looks at the file at most twice a second. The clock runs on
  /// while this process is stopped, so one that is woken looks before it writes. Throws kFolderOwned alone: a
  /// file that cannot be read just now may be readable soon. From any thread.
  void check_often() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Whether the folder's LOCK names an owner, alive or gone: then the folder is a run's.
bool names_owner(const std::string& run_dir);

}  // namespace tycho
