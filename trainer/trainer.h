// Trains: the loop, and the state that it advances.
#pragma once
#include <atomic>
#include <memory>

#include "trainer/config.h"
#include "trainer/data/loader.h"
#include "trainer/eval/evaluate.h"
#include "trainer/metrics/throughput.h"
#include "trainer/models/model.h"
#include "trainer/optim/grad_clip.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/schedule.h"
#include "trainer/optim/segments.h"
#include "trainer/parallel/communicator.h"
#include "trainer/saver.h"
#include "trainer/train_state.h"

namespace tycho {

/// What training gets from outside; all of it outlives the trainer.
struct TrainerContext {
  at::Device device = at::kCPU;
  Communicator& world;
  Reporter& reporter;
  Saver& saver;
  CheckpointMeta checkpoint;     // what every checkpoint records besides step and state
  const std::atomic<int>& stop;  // number of the signal that asked for a stop, or 0
};

/// Owned by one thread. Construction takes all memory; nothing is read or drawn yet.
class Trainer {
 public:
  Trainer(const TrainConfig& config, const RunInfo& info, TrainerContext context);

  /// First weights from the seed, or those that the recipe names; step 0.
  void initialise();
  /// All state from the first of these checkpoints that can be read whole (resume.h); returns that one.
  CheckpointInfo resume(const std::vector<CheckpointInfo>& candidates);

  /// Trains until max_duration or a stop, and saves at the end. Returns the signal that stopped it, or 0.
  int fit();
  /// One optimizer step.
  void step();
  /// Saves what there is now, and waits until it is written.
  void save_and_wait();

  const TrainState& state() const { return state_; }
  /// At the end of the run, or where this process was told to leave it.
  bool finished() const { return state_.step >= info_.until_step.value_or(info_.total_steps); }

 private:
  void open_data();
  Tensor token_weight(const Batch& batch);
  bool may_update(double loss, double grad_norm);
  MicroBatch micro_batch(const Batch& batch, int64_t first_sequence);
  void record(const Batch& batch, double loss, double lr, double grad_norm, double step_s);
  void evaluate();
  void save();
  bool due(const std::optional<Duration>& every) const;

  TrainConfig config_;
  RunInfo info_;
  TrainerContext context_;
  BatchShape micro_shape_;
  ParamRules rules_;
  LocalUnits units_;
  Model model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Tensor> trained_grads_;
  std::unique_ptr<DataLoader> data_;
  std::unique_ptr<Evaluator> evaluator_;  // none without eval.data
  Schedule schedule_;
  Throughput throughput_;
  TrainState state_;
};

}  // namespace tycho
