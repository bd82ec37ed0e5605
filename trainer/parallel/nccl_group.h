// An NCCL group that does not hang: a watchdog thread checks whether a rank has gone and aborts whatever
// waits for it.
#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "trainer/base/error.h"
#include "trainer/parallel/communicator.h"
#include "trainer/parallel/nccl/nccl_table.h"

namespace tycho {

/// Used by one thread; its own thread watches. `host` outlives it.
class NcclGroup {
 public:
  /// Joins the ranks of `host` on `device`. Collective. Throws Error when a rank has gone, with its words, or
  /// when NCCL cannot (kTopology).
  NcclGroup(Communicator& host, const at::Device& device);
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  /// The group, on the thread's current device; throws when it has broken.
  NcclTable::Group get();
  /// Throws when it has broken: why, as Communicator says it.
  void check();

  /// NcclTable's. A group that breaks has no registrations any more.
  void* register_buffer(void* data, int64_t num_bytes);
  void deregister_buffer(void* registration) noexcept;

 private:
  void join();
  void watch();
  bool look();

  Communicator& host_;
  at::Device device_;
  NcclTable::Group group_ = nullptr;
  std::atomic<bool> broken_ = false;  // and the two below are written
  std::string how_;                   // this rank noticed
  bool is_own_ = false;               // the failure is this rank's, and the others wait to be told
  std::optional<Error> told_;         // by the first check() after it
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tycho
