// Ownership of a place in a store of objects by one live run, through numbered lease objects. Torch-free.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "trainer/buckets/bucket.h"
#include "trainer/lock/owner.h"

namespace tycho {

/// Held for the life of a run. "lease/000000007" is one line of JSON that names the owner (owner.h), then
/// "beat N" or "released". The object with the highest number counts. It is created only where it is absent,
/// so that of several runs that take over one succeeds, without a comparison that some stores lack.
class PlaceLease {
 public:
  static constexpr double kStale_s = 120;
  struct Settings {
    double stale_s = kStale_s;
    /// uuid of the owner whose run folder this process has taken over: its lease ends at once. "" for none.
    std::string predecessor = {};
    /// Called about once a second while a silent owner is watched. An exception ends the wait.
    std::function<void(const std::string& text)> waiting = {};
    std::stop_token stop = {};
  };

  /// Takes the place. A live owner is an Error (kFolderOwned) that names host, pid and job. An owner is
  /// replaced when it left, is dead (same boot, no such process), is an earlier start of the same Slurm job,
  /// is the predecessor, or has not beaten for `stale_s` while it was watched. `beats` are written through a
  /// second bucket of the same place, which may have shorter tries.
  PlaceLease(std::shared_ptr<Bucket> bucket, std::shared_ptr<Bucket> beats, Settings settings);
  /// Marks the lease as released, if the store answers within some seconds.
  ~PlaceLease();

  /// Records the owner of the run folder, for the next run's `predecessor`.
  void set_folder_owner(const std::string& uuid);
  /// Throws Error (kFolderOwned) when the place is no longer ours, another Error when the store does not say.
  /// Callable from any thread.
  void check(const std::stop_token& stop = {}) const;

 private:
  bool take();
  std::string text(const std::string& state) const;
  void beat(const std::stop_token& stop);

  const std::shared_ptr<Bucket> bucket_, beats_;
  const Settings settings_;
  Owner owner_;
  std::string name_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string folder_owner_;
  std::atomic<int64_t> num_beats_ = 0;
  std::jthread thread_;  // declared last, so that it stops before the members that it uses are destroyed
};

}  // namespace tycho
