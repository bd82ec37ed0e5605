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
  /// Trains until so many steps are done, the run's end or a stop; evaluates and saves when it is due.
  void advance(int64_t until_step);
  /// One optimizer step.
  void step();
  /// The loss on eval.data now; nothing without it, or when it was stopped.
  std::optional<EvalResult> evaluate();
  /// Saves what there is now, unless that was done, and waits until it is written.
  void save_now();

  const TrainState& state() const { return state_; }
  /// At the end of the run, or where this process was told to leave it.
  bool finished() const { return state_.step >= info_.until_step.value_or(info_.total_steps); }
  /// None before the first step of this process.
  const std::optional<StepMetrics>& last_step() const { return last_step_; }
  const TrainConfig& config() const { return config_; }
  const ParamRules& rules() const { return rules_; }
  UnitStore& units() { return units_; }
  /// Learning rate of the step that follows `steps_done` steps.
  double lr_at(int64_t steps_done) const;
  /// Another reader of the training data.
  std::unique_ptr<DataLoader> loader_at(const DataCursor& cursor) const;

 private:
  void open_data();
  Tensor token_weight(const Batch& batch);
  bool may_update(double loss, double grad_norm);
  MicroBatch micro_batch(const Batch& batch, int64_t first_sequence);
  void record(const Batch& batch, double loss, double lr, double grad_norm, double step_s);
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
  std::optional<StepMetrics> last_step_;
};

}  // namespace tycho
