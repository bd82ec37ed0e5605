// Who owns a run folder: one live process, by a LOCK file with a heartbeat (reference/reliability.md F33). Torch-free.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "trainer/base/file_ops.h"

namespace tycho {

/// Held for the life of a run. A thread refreshes the file every few seconds.
class RunLock {
 public:
  /// Takes <run_dir>/LOCK. A live owner is an Error (kFolderOwned) naming host, pid and job. An owner that is dead (same
  /// host and boot, no such process), is the same Slurm job with a lower restart count, or has not refreshed for
  /// `stale_s` seconds as seen from here, is replaced and the epoch grows by one.
  RunLock(FileOps& files, const std::string& run_dir, double stale_s = 60);
  ~RunLock();
  /// Grows each time the folder changes owner; orders checkpoints of successive owners.
  int64_t epoch() const;
  /// Throws Error (kFolderOwned) when the file is no longer ours.
  void check() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tycho
