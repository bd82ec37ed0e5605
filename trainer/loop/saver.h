// Checkpoints during training: a copy in memory, written while training continues.
#pragma once
#include <atomic>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/metrics/reporter.h"
#include "trainer/optim/optimizer.h"
#include "trainer/units/flat_unit.h"

namespace tycho {

/// Owned by the trainer's thread. One save at a time: the next one waits for the one in flight.
class Saver {
 public:
  /// Without a store it writes nothing: another rank does.
  Saver(std::optional<CheckpointStore> store, bool async, Reporter& reporter);
  /// Waits for a save in flight; a failure then is only reported.
  ~Saver();

  /// The checkpoint that training goes on from.
  void set_resumed_from(const CheckpointInfo& info) {
    if (store_) store_->set_resumed_from(info);
  }
  /// Copies all state and starts to write it. Refuses (kNumerics) weights that are not finite. A failed write
  /// is reported and training goes on; the third in a row is thrown (kStorage), and a lost folder
  /// (kFolderOwned) at once.
  void save(CheckpointMeta meta, std::vector<FlatUnit>& units, Optimizer& optimizer);
  /// Waits for the save in flight. `last` throws its failure: nothing will try again.
  void wait(bool last);
  /// Reports a save that has finished meanwhile.
  void poll();
  /// Seconds that training stood still for saves since the last call.
  double take_pause_s();
  /// The save that finished since the last call, if one did.
  std::optional<CheckpointInfo> take_saved() { return std::exchange(saved_, std::nullopt); }
  /// Seconds that it took to write.
  double write_s() const { return write_s_; }
  /// The newest save is not written yet.
  bool in_flight() const { return writer_.joinable(); }

 private:
  void write(const CheckpointMeta& meta, const std::vector<TensorBytes>& tensors);
  void settle(bool last);

  std::optional<CheckpointStore> store_;
  bool async_;
  Reporter& reporter_;
  std::vector<Tensor> copies_;  // host memory for the snapshot, taken at the first save
  std::thread writer_;
  std::atomic<bool> written_ = false;
  int64_t step_ = 0;
  double write_s_ = 0;
  std::optional<CheckpointInfo> result_, saved_;
  std::exception_ptr failure_;
  int failures_in_a_row_ = 0;
  double pause_s_ = 0;
};

}  // namespace tycho
