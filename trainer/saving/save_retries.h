// Retries of a save that failed: when, what users read meanwhile, and when the run ends instead.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/comm/communicator.h"
#include "trainer/metrics/reporter.h"
#include "trainer/saving/retry_policy.h"

namespace tycho {

/// Rank 0 knows of failures and decides; read() tells the others. All references must outlive the object.
class SaveRetries {
 public:
  /// `max_lost_s`: ckpt.max_lost.
  SaveRetries(double max_lost_s, Communicator& world, Reporter& reporter)
      : policy_(max_lost_s), world_(world), reporter_(reporter) {}

  /// Starts a save: forgets the next try. Returns the tags that failed saves did not get, "" for none.
  std::vector<std::string> start();
  void took_snapshot() { policy_.took_snapshot(); }
  void succeeded() { policy_.succeeded(); }
  /// Reports that the save of this step failed. With `last`, it is not repeated.
  void failed(int64_t step, const std::string& tag, const Error& error, bool last);
  /// Throws Error (kStorage) if the newest save failed.
  void require_saved() const;
  /// Called after each step. While saves fail, shows for how long and when the next try is, and throws Error
  /// (kStorage) when that is longer than ckpt.max_lost.
  void trained(int64_t step, double seconds);
  /// See Saver::wait_before_retry. Collective.
  void wait(int64_t step, const std::atomic<int>& stop);

  /// Step after which the failed save is repeated. The same on all ranks.
  const std::optional<int64_t>& step() const { return step_; }
  /// Adds the failures since the last call, the newest at `step`, to what rank 0 tells all ranks.
  void tell(int64_t step, Json& news);
  /// Takes what tell() added.
  void read(const Json& news);

 private:
  void require_allowed_loss() const;
  [[noreturn]] void give_up(const std::string& why) const;

  RetryPolicy policy_;
  Communicator& world_;
  Reporter& reporter_;
  std::string why_failed_;                // on rank 0
  std::vector<std::string> failed_tags_;  // on rank 0, not told yet
  std::optional<int64_t> step_;
  std::vector<std::string> tags_;  // for the next try
};

}  // namespace tycho
