// Checkpoints during training: a copy in memory, written while training continues, by one rank or by several.
#pragma once
#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/checkpoint_uploads.h"
#include "trainer/checkpoint/shard_writer.h"
#include "trainer/comm/communicator.h"
#include "trainer/kernels/tensor.h"
#include "trainer/metrics/reporter.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/weight_average.h"
#include "trainer/recipe/ckpt.h"
#include "trainer/saving/retry_policy.h"
#include "trainer/saving/shard_exchange.h"
#include "trainer/sharding/owned_range.h"

namespace tycho {

/// Saves checkpoints. Owned by the trainer's thread. One save at a time: the next one waits for the one in
/// flight. With several writers save, wait and take_saved are collective.
class Saver {
 public:
  /// The store is rank 0's. `writers` are ranks of the world, ascending from 0, that write what they own
  /// through `files`, each into a file of its own; rank 0 commits. All other ranks own copies. With one
  /// writer rank 0 owns everything. All references must outlive the saver.
  Saver(std::optional<CheckpointStore> store, const CheckpointConfig& config, std::vector<int> writers,
        FileOps& files, Communicator& world, Reporter& reporter);
  /// Waits for a save in flight that needs no other rank, and abandons one that does. A failure is no longer
  /// reported.
  ~Saver();

  /// Sets the checkpoint that training continues from.
  void set_resumed_from(const CheckpointInfo& info) {
    if (store_) store_->set_resumed_from(info);
    if (uploads_ != nullptr) uploads_->set_resumed_from(info.uuid);
  }
  /// Sets where checkpoints are uploaded to once they are durable; null for nowhere. Outlives the saver.
  /// Retention spares what is not uploaded.
  void set_uploads(CheckpointUploads* uploads);
  /// Waits at the end of training for the uploads; see finish_uploads(). Collective.
  void wait_for_uploads(const std::atomic<int>& stop, int ended_by);
  /// Requests a checkpoint with this tag at the next save; "" for one without.
  void request(const std::string& tag) { requested_.push_back(tag); }
  bool has_requests() const { return !requested_.empty(); }
  void forget_requests() { requested_.clear(); }
  /// Saves one checkpoint for each requested tag, or one without when there is none: copies all state and
  /// starts to write it. Refuses (kNumerics) weights that are not finite. A failed write is reported, and
  /// training continues as long as trained() allows; a lost folder (kFolderOwned) is thrown at once.
  void save(CheckpointMeta meta, const std::vector<OwnedRange>& ranges, Optimizer& optimizer,
            WeightAverage* average = nullptr);
  /// Waits for the save in flight. With `last`, throws Error (kStorage) when the newest one failed, because
  /// nobody will try again.
  void wait(bool last);
  /// Called after each step. While saves fail, shows for how long and when the next attempt is, and throws
  /// Error (kStorage) when that is longer than ckpt.max_lost.
  void trained(int64_t step, double seconds);
  /// Returns true when a save failed and is to be repeated after this step. The same on all ranks.
  bool is_retry_due(int64_t step) const { return retry_.step && step >= *retry_.step; }
  bool must_retry() const { return retry_.step.has_value(); }
  /// Called at the end of training, before a save is repeated: shows that it waits, and waits a while, which
  /// counts like training. Throws like trained() on rank 0, and at once when `stop` of any rank holds a
  /// signal. Collective.
  void wait_before_retry(const std::atomic<int>& stop);
  /// Reports a save that has finished since the last call, and uploads. Throws what ends the run: a place in
  /// a store that another run has taken (kFolderOwned), too many checkpoints that wait (kStorage).
  void poll();
  /// Returns the seconds that training was paused for saves since the last call.
  double take_pause_s();
  /// Returns the checkpoints that became durable since the last call, oldest first: tag, path, bytes,
  /// saved_step, seconds. Empty while one is being written. Tells all ranks when to try again after a
  /// failure. Collective.
  Json take_saved();
  /// Returns true when the newest checkpoint from take_saved() is of this step.
  bool has_saved(int64_t step) const { return saved_step_ == step; }
  /// Returns the folder of that checkpoint.
  const std::string& saved_path() const { return saved_path_; }
  /// Forgets the newest checkpoint, because training continues from another state.
  void forget_saved() { saved_step_.reset(); }

 private:
  using Tensors = std::vector<TensorBytes>;

  bool is_shared() const { return writers_.size() > 1; }
  bool writes() const { return std::binary_search(writers_.begin(), writers_.end(), world_.rank()); }
  void save_one(CheckpointMeta meta, const std::vector<OwnedRange>& ranges, Optimizer& optimizer,
                WeightAverage* average);
  /// Copies the state of this rank to host memory.
  Tensors snapshot(const std::vector<OwnedRange>& ranges, Optimizer& optimizer, WeightAverage* average);
  void write(const CheckpointMeta& meta, const Tensors& tensors);
  /// Writes this rank's shard. Returns the shards of all ranks, once all are written.
  std::vector<WrittenShard> write_with_others(const std::string& folder, const Tensors& tensors);
  /// Starts a save of several ranks.
  void start_together(CheckpointMeta meta, Tensors tensors);
  /// Returns the name of this rank's shard: part of a checkpoint until shards are joined.
  std::string shard_name() const;
  void write_own_shard(const std::string& folder, const Tensors& tensors);
  /// Passes the shards that all ranks have written to the rank that commits. With `wait`, waits for those
  /// that are not written yet; otherwise does nothing then.
  void collect_shards(bool wait);
  void give_shards(const std::vector<std::string>& of_ranks);
  /// Ends a save. With `last`, a failure is not repeated.
  void settle(bool last);
  void note_failure(const Error& error, bool last);
  void require_allowed_loss() const;
  [[noreturn]] void give_up(const std::string& why) const;
  Json outcome();

  std::optional<CheckpointStore> store_;
  CheckpointUploads* uploads_ = nullptr;
  bool async_;
  bool joins_;  // shards of several ranks become one file
  std::vector<int> writers_;
  FileOps& files_;
  Communicator& world_;
  Reporter& reporter_;
  std::vector<Tensor> copies_;  // host memory of the snapshot, allocated at the first save
  std::thread writer_;
  std::atomic<bool> written_ = false;
  std::unique_ptr<ShardExchange> exchange_;  // on rank 0, when there are several writers
  std::string own_shard_;                    // on other ranks: the shard written, as JSON
  bool collecting_ = false;                  // shards of several ranks are being written
  int64_t step_ = 0;
  double write_s_ = 0;
  std::optional<CheckpointInfo> result_;
  Json saved_ = Json::array();  // durable, and not yet returned by take_saved()
  std::exception_ptr failure_;
  RetryPolicy policy_;
  std::string why_failed_;  // on rank 0
  std::vector<std::string> failed_tags_;
  std::string tag_;  // tag of the newest snapshot
  struct Retry {
    std::optional<int64_t> step;
    std::vector<std::string> tags;
  };
  Retry retry_;  // the next try of a save that failed, on all ranks
  std::vector<std::string> requested_;
  bool is_open_ = false;  // a save was started, and not all ranks know its result
  std::optional<int64_t> saved_step_;
  std::string saved_path_;
  double pause_s_ = 0;
};

}  // namespace tycho
