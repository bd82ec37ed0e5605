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
#include "trainer/checkpoint/config.h"
#include "trainer/checkpoint/shard_writer.h"
#include "trainer/kernels/tensor.h"
#include "trainer/loop/shard_exchange.h"
#include "trainer/metrics/reporter.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/weight_average.h"
#include "trainer/parallel/communicator.h"
#include "trainer/units/owned_range.h"

namespace tycho {

/// Owned by the trainer's thread. One save at a time: the next one waits for the one in flight. With several
/// writers save, wait and take_news are collective.
class Saver {
 public:
  /// The store is rank 0's. `writers`, ranks of the world, ascending from 0, write what they own through
  /// `files`, each a file of its own, and rank 0 commits; all others own the same again. With one writer rank
  /// 0 owns everything. All references outlive the saver.
  Saver(std::optional<CheckpointStore> store, const CheckpointConfig& config, std::vector<int> writers,
        FileOps& files, Communicator& world, Reporter& reporter);
  /// Waits for a save in flight that needs no other rank, and gives one up that does. A failure is not
  /// reported any more.
  ~Saver();

  /// The checkpoint that training goes on from.
  void set_resumed_from(const CheckpointInfo& info) {
    if (store_) store_->set_resumed_from(info);
  }
  /// Asks for a checkpoint of this name at the next save; "" for one without.
  void want(const std::string& tag) { wanted_.push_back(tag); }
  bool has_wanted() const { return !wanted_.empty(); }
  void forget_wanted() { wanted_.clear(); }
  /// One checkpoint for each name that was asked for, and one without when there is none: copies all state
  /// and starts to write it. Refuses (kNumerics) weights that are not finite. A failed write is reported, and
  /// training goes on as long as trained() lets it; a lost folder (kFolderOwned) is thrown at once.
  void save(CheckpointMeta meta, const std::vector<OwnedRange>& ranges, Optimizer& optimizer,
            WeightAverage* average = nullptr);
  /// Waits for the save in flight. `last` throws (kStorage) when the newest one failed: nobody will try
  /// again.
  void wait(bool last);
  /// A step was made. While saves fail it says on the screen for how long, and when the next try is, and
  /// throws (kStorage) when that is longer than ckpt.max_lost.
  void trained(int64_t step, double seconds);
  /// Whether a save failed and is to be tried again after this step. The same on all ranks.
  bool is_retry_due(int64_t step) const { return retry_step_ && step >= *retry_step_; }
  bool must_retry() const { return retry_step_.has_value(); }
  /// At the end of training, before a save is tried again: says so on the screen and waits a while, which
  /// counts like training. Throws as trained() does, on rank 0, and at once when `stop` of any rank holds a
  /// signal. Collective.
  void wait_before_retry(const std::atomic<int>& stop);
  /// Reports a save that has finished meanwhile.
  void poll();
  /// Seconds that training stood still for saves since the last call.
  double take_pause_s();
  /// The checkpoints that became durable since the last call, oldest first: tag, path, bytes, saved_step,
  /// seconds. None while one is being written. All ranks learn here when to try again after a failure.
  /// Collective.
  Json take_news();
  /// Whether the newest checkpoint that take_news() returned is of this step.
  bool has_saved(int64_t step) const { return saved_step_ == step; }
  /// The folder of that checkpoint.
  const std::string& saved_path() const { return saved_path_; }
  /// Training goes on from another state.
  void forget_saved() { saved_step_.reset(); }

 private:
  using Tensors = std::vector<TensorBytes>;

  bool is_shared() const { return writers_.size() > 1; }
  bool writes() const { return std::binary_search(writers_.begin(), writers_.end(), world_.rank()); }
  void save_one(CheckpointMeta meta, const std::vector<OwnedRange>& ranges, Optimizer& optimizer,
                WeightAverage* average);
  /// The state of this rank in host memory.
  Tensors snapshot(const std::vector<OwnedRange>& ranges, Optimizer& optimizer, WeightAverage* average);
  void write(const CheckpointMeta& meta, const Tensors& tensors);
  /// The shards of all ranks, when all have ended with writing theirs.
  std::vector<WrittenShard> write_with_others(const std::string& folder, const Tensors& tensors);
  /// Begins what several ranks write.
  void start_together(CheckpointMeta meta, Tensors tensors);
  /// Of this rank: part of a checkpoint until shards are joined.
  std::string shard_name() const;
  void write_own_shard(const std::string& folder, const Tensors& tensors);
  /// Hands the shards that all ranks have written to the one that commits. `wait`: for those that have not
  /// yet; else nothing happens then.
  void collect_shards(bool wait);
  void give_shards(const std::vector<std::string>& of_ranks);
  /// `last`: a failure is not tried again.
  void settle(bool last);
  void note_failure(const Error& error, bool last);
  double lost_s() const;
  double step_s() const;
  double retry_s() const;
  void require_allowed_loss() const;
  [[noreturn]] void give_up(const std::string& why) const;
  Json news();

  std::optional<CheckpointStore> store_;
  bool async_;
  bool joins_;  // shards of several ranks become one file
  double max_lost_s_;
  std::vector<int> writers_;
  FileOps& files_;
  Communicator& world_;
  Reporter& reporter_;
  std::vector<Tensor> copies_;  // host memory for the snapshot, taken at the first save
  std::thread writer_;
  std::atomic<bool> written_ = false;
  std::unique_ptr<ShardExchange> exchange_;  // of rank 0, when there are several writers
  std::string own_shard_;                    // of another rank: what it has written, as JSON
  bool collecting_ = false;                  // shards of several ranks are being written
  int64_t step_ = 0;
  double write_s_ = 0;
  std::optional<CheckpointInfo> result_;
  Json saved_ = Json::array();  // durable, and not yet returned by take_news()
  std::exception_ptr failure_;
  // While saves fail, on rank 0: how long was trained until the oldest snapshot that is not saved.
  std::optional<double> failing_since_s_;
  std::string why_failed_;
  std::vector<std::string> failed_tags_;
  double trained_s_ = 0, snapshot_s_ = 0;  // of training: so far, until the newest snapshot
  int64_t num_trained_ = 0;                // steps of this process
  int64_t trained_step_ = 0;
  std::string tag_;                    // of the newest snapshot
  std::optional<int64_t> retry_step_;  // on all ranks, like the tags
  std::vector<std::string> retry_tags_;
  std::vector<std::string> wanted_;
  bool is_open_ = false;  // a save was begun, and not all ranks know what came of it
  std::optional<int64_t> saved_step_;
  std::string saved_path_;
  double pause_s_ = 0;
};

}  // namespace tycho
