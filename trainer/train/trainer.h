// The training loop, and the state that it advances.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/data/rows/batch.h"
#include "trainer/metrics/step_metrics.h"
#include "trainer/profiler/profiler.h"
#include "trainer/recipe/train_config.h"
#include "trainer/session/eval_result.h"
#include "trainer/state/train_state.h"
#include "trainer/train/batch_pass.h"
#include "trainer/train/evaluations.h"
#include "trainer/train/hooks.h"
#include "trainer/train/live_controls.h"
#include "trainer/train/product_tuning.h"
#include "trainer/train/run_checkpoints.h"
#include "trainer/train/step_figures.h"
#include "trainer/train/trainer_context.h"
#include "trainer/train/training_data.h"
#include "trainer/train/weight_update.h"

namespace tycho {

class LossByPosition;

/// Trains: fetches batches, computes gradients, updates the weights, and at step boundaries evaluates, saves
/// and does what callbacks and operators command. Owned by one thread.
class Trainer {
 public:
  /// Takes all memory; reads and draws nothing yet.
  Trainer(const TrainConfig& config, const RunInfo& info, TrainerContext context);

  /// Replaces all state by that of a checkpoint of this model, which was verified, and ends a stop or pause.
  void load(const CheckpointInfo& info);

  /// Trains until max_duration or a stop, and saves at the end. Returns the signal that stopped it, or 0.
  int fit();
  /// Trains until `until_step` steps are done, the run's end or a stop. Evaluates and saves when due.
  void advance(int64_t until_step);
  /// Makes one optimizer step. Returns false when Ctrl-C ended a dynamic schedule before it: no step was
  /// made.
  bool step();
  /// Does what belongs between two steps: what was commanded, evaluations that are due, and a save when
  /// `save_due`. Collective.
  void step_boundary(bool save_due);
  /// Clears the stop of a command, or of a signal that is no longer set. Collective.
  void forget_stop();
  /// Returns true until the end or a stop is reached.
  bool should_continue() const { return !is_finished() && !halt_.stops(); }
  /// Returns true at the end of the run, or where this process was told to leave it.
  bool is_finished() const { return state_.step >= info_.until_step.value_or(info_.total_steps); }
  /// Returns the loss on the sets of eval_data now; nothing without any, or when it was stopped. With a name,
  /// that of one of several sets: callbacks do not hear of that, and state() does not remember it. Throws
  /// Error (kUsage) for a name that is not there.
  std::optional<EvalResults> evaluate(const std::string& only = "");

  const TrainState& state() const { return state_; }
  const RunInfo& info() const { return info_; }
  const Halt& halt() const { return halt_; }
  LiveControls& controls() { return controls_; }
  const StepFigures& figures() const { return figures_; }
  const TrainingData& data() const { return data_; }
  RunCheckpoints& checkpoints() { return checkpoints_; }
  BatchPass& pass() { return pass_; }
  WeightUpdate& update() { return update_; }
  Hooks& hooks() { return hooks_; }
  Profiler& profiler() { return profiler_; }
  /// Returns the step that is running while its batch_start, after_forward or grads_ready is announced; else
  /// the newest that is done.
  int64_t recorded_step() const { return state_.step + (hooks_.is_in_step() ? 1 : 0); }
  /// Returns the learning rate of the step that follows `steps_done` steps, as far as it is known now.
  double lr_at(int64_t steps_done) const { return controls_.lr_at(steps_done, hooks_.last_factor()); }
  /// Returns lr_at() without what commands pin and scale.
  double scheduled_lr(int64_t steps_done) const {
    return controls_.scheduled_lr(steps_done, hooks_.last_factor());
  }
  /// Returns true if whatever failed since forget_failure() failed on all ranks at the same place: no rank
  /// waits for another.
  bool failed_together() const { return failed_together_; }
  void forget_failure() { failed_together_ = false; }
  /// Returns true where ranks have parts of the model, so that a whole tensor is known to all of them
  /// together alone.
  bool is_shared() const { return context_.mesh.group(kCopyAxes).size() > 1; }
  /// Called before parameters are read from outside of the loop: Hooks::require_all_ranks where they are
  /// shared.
  void require_all_ranks(const std::string& what);

 private:
  void announce(AnnouncedEvent announced);
  /// Throws Error (kFolderOwned) when another process owns the run folder now.
  void require_owner() const;
  /// Applies what callbacks and operators asked for. Throws Error (kRecipe) when one is to stop the run.
  /// Collective.
  void obey(int wait_ms = 0);
  /// Obeys commands, and makes evaluations that are due, which may ask for more.
  void obey_and_evaluate();
  void wait_while_paused();
  /// Checks, when the context is `paranoid`, that what ranks have in common is alike: tensors before the
  /// first step of this process, then every hundred steps, and at the end. Throws Error (kTopology) that
  /// names what is not. Collective.
  void compare_ranks();
  /// Calls `same`, which all ranks do alike, and returns its result. Should it throw, all ranks have failed
  /// at one place, and no rank waits for another.
  template <class Function>
  auto together(const Function& same);
  /// Returns whether the numbers of the coming step may change the weights; reports a step that may not.
  bool may_update(double loss, double grad_norm);
  /// Returns what callbacks and loggers look at in the coming step; `by_position` outlives it.
  BatchObservers observers(std::optional<LossByPosition>& by_position);
  /// Computes a batch for the forms of its products, and chooses their algorithms. Collective.
  void tune(const Batch& batch);
  /// Counts a step of so many sequences of this rank.
  void count_step(int64_t num_sequences, int64_t seq_len);
  void warn_of_loss(const std::string& warning);

  TrainConfig recipe_;
  RunInfo info_;
  TrainerContext context_;
  TrainState state_;
  LiveControls controls_;
  BatchPass pass_;
  ProductTuning tuning_;
  WeightUpdate update_;
  TrainingData data_;
  StepFigures figures_;
  Evaluations evaluations_;
  Profiler profiler_;
  Hooks hooks_;
  RunCheckpoints checkpoints_;
  Halt halt_;
  bool failed_together_ = false;
};

}  // namespace tycho
