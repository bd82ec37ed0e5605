// Checkpoints during training: a copy in memory, written while training continues.
#pragma once
#include <atomic>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/kernels/tensor.h"
#include "trainer/metrics/reporter.h"
#include "trainer/optim/optimizer.h"
#include "trainer/parallel/communicator.h"
#include "trainer/units/owned_range.h"

namespace tycho {

/// Owned by the trainer's thread. One save at a time: the next one waits for the one in flight.
class Saver {
 public:
  /// Without a store it writes nothing: rank 0 does. `world` and `reporter` outlive it.
  Saver(std::optional<CheckpointStore> store, bool async, Communicator& world, Reporter& reporter);
  /// Waits for a save in flight; a failure then is only reported.
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
  /// and starts to write it. Refuses (kNumerics) weights that are not finite. A failed write is reported and
  /// training goes on; the third in a row is thrown (kStorage), and a lost folder (kFolderOwned) at once.
  void save(CheckpointMeta meta, const std::vector<OwnedRange>& ranges, Optimizer& optimizer);
  /// Waits for the save in flight. `last` throws its failure: nothing will try again.
  void wait(bool last);
  /// Reports a save that has finished meanwhile.
  void poll();
  /// Seconds that training stood still for saves since the last call.
  double take_pause_s();
  /// What came of the newest save, once: tag, path, bytes, saved_step, seconds when it is durable. Null while
  /// it is written, when it failed, and when that was told. Collective.
  Json take_news();
  /// Whether the newest checkpoint that take_news() told of is of this step.
  bool has_saved(int64_t step) const { return saved_step_ == step; }
  /// Training goes on from another state.
  void forget_saved() { saved_step_.reset(); }

 private:
  void save_one(CheckpointMeta meta, const std::vector<OwnedRange>& ranges, Optimizer& optimizer);
  void write(const CheckpointMeta& meta, const std::vector<TensorBytes>& tensors);
  void settle(bool last);

  std::optional<CheckpointStore> store_;
  bool async_;
  Communicator& world_;
  Reporter& reporter_;
  std::vector<Tensor> copies_;  // host memory for the snapshot, taken at the first save
  std::thread writer_;
  std::atomic<bool> written_ = false;
  int64_t step_ = 0;
  double write_s_ = 0;
  std::optional<CheckpointInfo> result_, saved_;
  std::exception_ptr failure_;
  int failures_in_a_row_ = 0;
  std::vector<std::string> wanted_;
  bool is_open_ = false;  // a save was begun, and not all ranks know what came of it
  std::optional<int64_t> saved_step_;
  double pause_s_ = 0;
};

}  // namespace tycho
