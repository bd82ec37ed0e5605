// Checkpoints during training: a copy in memory, written while training continues, by one rank or by several.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/checkpoint_uploads.h"
#include "trainer/comm/communicator.h"
#include "trainer/kernels/tensor.h"
#include "trainer/metrics/reporter.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/weight_average.h"
#include "trainer/recipe/ckpt.h"
#include "trainer/saving/save_retries.h"
#include "trainer/saving/shard_collection.h"
#include "trainer/saving/writer_thread.h"
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
  void trained(int64_t step, double seconds) { retries_.trained(step, seconds); }
  /// Returns true when a save failed and is to be repeated after this step. The same on all ranks.
  bool is_retry_due(int64_t step) const { return must_retry() && step >= *retries_.step(); }
  bool must_retry() const { return retries_.step().has_value(); }
  /// Called at the end of training, before a save is repeated: shows that it waits, and waits a while, which
  /// counts like training. Throws like trained() on rank 0, and at once when `stop` of any rank holds a
  /// signal. Collective.
  void wait_before_retry(const std::atomic<int>& stop) { retries_.wait(step_, stop); }
  /// Reports a save that has finished since the last call, and uploads. Throws what ends the run: a place in
  /// a store that another run has taken (kFolderOwned), too many checkpoints that wait (kStorage).
  void poll();
  /// Returns the seconds that training was paused for saves since the last call.
  double take_pause_s() { return std::exchange(pause_s_, 0.0); }
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
  using Tensors = ShardCollection::Tensors;

  void save_one(CheckpointMeta meta, const std::vector<OwnedRange>& ranges, Optimizer& optimizer,
                WeightAverage* average);
  /// Copies the state of this rank to host memory.
  Tensors snapshot(const std::vector<OwnedRange>& ranges, Optimizer& optimizer, WeightAverage* average);
  /// Writes a checkpoint. On rank 0, on the writer's thread.
  void write(const CheckpointMeta& meta, const Tensors& tensors);
  /// Waits like wait(), without counting the pause.
  void finish(bool last);
  /// Ends a save. With `last`, a failure is not repeated.
  void settle(bool last);
  void note_saved(const CheckpointInfo& info, double seconds);

  std::optional<CheckpointStore> store_;
  CheckpointUploads* uploads_ = nullptr;
  bool async_;
  Communicator& world_;
  Reporter& reporter_;
  ShardCollection shards_;
  SaveRetries retries_;
  std::vector<Tensor> copies_;            // host memory of the snapshot, allocated at the first save
  int64_t step_ = 0;                      // of the newest snapshot
  std::string tag_;                       // of the newest snapshot
  std::optional<CheckpointInfo> result_;  // of the writer
  Json saved_ = json_array();             // durable, and not yet returned by take_saved()
  std::vector<std::string> requested_;
  bool is_open_ = false;  // a save was started, and not all ranks know its result
  std::optional<int64_t> saved_step_;
  std::string saved_path_;
  double pause_s_ = 0;
  WriterThread writer_;  // declared last: ends before the members that it uses are destroyed
};

}  // namespace tycho
