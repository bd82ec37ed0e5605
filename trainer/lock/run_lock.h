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
/// owner opened, so a late one never marks the LOCK of its successor.
class RunLock {
 public:
  static constexpr double kStale_s = 60;
  /// The end of a LOCK whose owner left the folder.
  static constexpr std::string_view kReleased = "\nreleased\n";
  /// Returns the epoch of the newest checkpoint in the folder, or 0.
  using NewestEpoch = std::function<int64_t()>;
  /// Called about once a second while a silent owner is watched, with a line for display that says what is
  /// awaited. An exception ends the wait.
  using Waiting = std::function<void(const std::string& text)>;

  /// Takes the folder. A live owner is an Error (kFolderOwned) that names host, pid and job. An owner is
  /// replaced, and the epoch grows by one, when it left, is dead (same boot, no such process), is an earlier
  /// start of the same Slurm job, or has not refreshed for `stale_s` seconds while it was watched. Watching
  /// is needed only for an owner on another machine or one that was stopped. A LOCK that is not a file, or is
  /// a link, is an Error (kUnusable). `newest_epoch` is null for folders without checkpoints.
  RunLock(FileOps& files, const std::string& run_dir, double stale_s = kStale_s, Waiting waiting = {},
          NewestEpoch newest_epoch = {});
  ~RunLock();
  /// Returns a number that grows each time the folder changes owner and exceeds the epoch of every checkpoint
  /// in it. It orders checkpoints of successive owners.
  int64_t epoch() const;
  /// Returns the id of this owner, new for every lock taken.
  const std::string& uuid() const;
  /// Throws Error (kFolderOwned) when the file is no longer ours, kStorage when it cannot be read. Callable
  /// from any thread.
  void check() const;
  /// Same as check(), but cheap enough for every write: reads the file at most twice a second. The clock
  /// continues while this process is stopped, so that it reads the file on waking, before it writes. Throws
  /// only kFolderOwned, because a file that cannot be read now may be readable soon. Callable from any
  /// thread.
  void check_often() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the id of the owner that the folder's LOCK names, alive or gone; "" when it names none.
std::string uuid_of_owner(const std::string& run_dir);
/// Returns true when the folder's LOCK names an owner, alive or gone: the folder then belongs to a run.
bool names_owner(const std::string& run_dir);

}  // namespace tycho
