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
#include "trainer/comm/communicator.h"
#include "trainer/cuda_plugin/nccl_table.h"

namespace tycho {

/// Used by one thread; its own thread monitors the group. `host` must outlive it.
class NcclGroup {
 public:
  /// Joins the ranks of `host` on `device`. Collective. Throws Error when a rank has gone, with its words, or
  /// when NCCL cannot join (kTopology).
  NcclGroup(Communicator& host, const at::Device& device);
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  /// Returns the group and makes its device current. Throws when it has broken.
  NcclTable::Group get();
  /// Throws when the group has broken, with the reason that Communicator gives.
  void check();

  /// See NcclTable. The registrations of a broken group are gone.
  void* register_buffer(void* data, int64_t num_bytes);
  void deregister_buffer(void* registration) noexcept;

 private:
  void join();
  void watch();
  bool look();

  Communicator& host_;
  at::Device device_;
  NcclTable::Group group_ = nullptr;
  std::atomic<bool> broken_ = false;  // set after the two below are written
  std::string how_;                   // how this rank noticed
  bool is_own_ = false;               // the failure is this rank's, and it must tell the others
  std::optional<Error> told_;         // thrown by the first check() after the failure, and by later ones
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tycho
