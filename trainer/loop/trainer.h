// The training loop, and the state that it advances.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "trainer/base/duration.h"
#include "trainer/base/json.h"
#include "trainer/callbacks/callback.h"
#include "trainer/callbacks/command.h"
#include "trainer/callbacks/event.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/config/run_clock.h"
#include "trainer/config/schedule.h"
#include "trainer/config/train_config.h"
#include "trainer/eval/result.h"
#include "trainer/loop/batch_pass.h"
#include "trainer/loop/evaluations.h"
#include "trainer/loop/hooks.h"
#include "trainer/loop/loop_context.h"
#include "trainer/loop/loss_by_position.h"
#include "trainer/loop/loss_watch.h"
#include "trainer/loop/run_length.h"
#include "trainer/loop/saver.h"
#include "trainer/loop/train_state.h"
#include "trainer/loop/training_data.h"
#include "trainer/loop/weight_update.h"
#include "trainer/loop/with_controls.h"
#include "trainer/metrics/reporter.h"
#include "trainer/metrics/step_metrics.h"
#include "trainer/metrics/throughput.h"
#include "trainer/parallel/communicator.h"
#include "trainer/parallel/mesh.h"
#include "trainer/profiler/profiler.h"
#include "trainer/rendezvous/progress.h"

namespace tycho {

/// The trainer's dependencies; all of them outlive it.
struct TrainerContext : LoopContext {
  Saver& saver;
  CheckpointMeta checkpoint;            // what every checkpoint records besides step and state
  CallbackSource* callbacks = nullptr;  // null: none of the recipe's run
  int local_rank = 0;                   // of this process on its machine
  bool paranoid = false;                // compare_ranks()
  /// Throws Error (kFolderOwned) when another process owns the run folder now. Quick; null: nobody can.
  std::function<void()> require_owner = {};
  int num_machines = 1;  // that ranks are spread over
  std::string until;     // a duration at which this process leaves the run, or ""
};

/// Owned by one thread. Construction takes all memory; nothing is read or drawn yet.
class Trainer {
 public:
  Trainer(const TrainConfig& config, const RunInfo& info, TrainerContext context);

  /// First weights from the seed, or those that the recipe names; step 0.
  void initialise();
  /// All state from the first of these checkpoints that can be read whole (resume.h); returns that one.
  CheckpointInfo resume(const std::vector<CheckpointInfo>& candidates);
  /// All state of a checkpoint of this model, which was verified, instead of what there is now.
  void load(const CheckpointInfo& info);
  /// Says which commands of earlier starts hold after resume() or load(), and which this start has ended.
  void report_held_commands();

  /// Trains until max_duration or a stop, and saves at the end. Returns the signal that stopped it, or 0.
  int fit();
  /// Trains until so many steps are done, the run's end or a stop; evaluates and saves when it is due.
  void advance(int64_t until_step);
  /// One optimizer step. False when Ctrl-C ended a dynamic schedule before it: no step was made.
  bool step();
  /// The boundary between two steps: does what was commanded, evaluates when that is due, and saves when
  /// `save_due`.
  void between_steps(bool save_due);
  /// A command for the next boundary, checked (make_command).
  void queue(Command command) { hooks_.queue(std::move(command)); }
  bool has_queued() const { return hooks_.has_queued(); }
  /// What callbacks record on this rank: reported here on rank 0, else by it after the next boundary.
  /// Metrics belong to recorded_step().
  void record_metric(const std::string& name, double value);
  void record_event(const std::string& kind, const std::string& text, const Json& facts);
  /// The step that is running while its batch_start, after_forward or grads_ready is announced; else the
  /// newest that is done.
  int64_t recorded_step() const { return state_.step + (in_step_ ? 1 : 0); }
  /// Forgets that a command stopped the run, or a signal that is not there any more. Collective.
  void go_on();
  /// No end and no stop is reached.
  bool going_on() const { return !finished() && signal_ == 0 && stop_reason_.empty(); }
  /// The loss on the sets of eval_data now; nothing without any, or when it was stopped. With a name, that of
  /// one of several sets: a look, which callbacks do not hear of and state() does not remember. Throws Error
  /// (kUsage) for a name that is not there.
  std::optional<EvalResults> evaluate(const std::string& only = "");
  /// Saves what there is now, unless that was done, and waits until it is written. Returns the checkpoint's
  /// folder.
  std::string save_now();

  const TrainState& state() const { return state_; }
  const RunInfo& info() const { return info_; }
  /// A length from now on, as steps.
  double steps_of(const Duration& length) const;
  /// Why a command stopped the run, or "".
  const std::string& stop_reason() const { return stop_reason_; }
  /// Whether what failed since forget_failure() failed on all ranks at the same place: none waits for
  /// another.
  bool failed_together() const { return failed_together_; }
  void forget_failure() { failed_together_ = false; }
  /// At the end of the run, or where this process was told to leave it.
  bool finished() const { return state_.step >= info_.until_step.value_or(info_.total_steps); }
  /// None before the first step of this process.
  const std::optional<StepMetrics>& last_step() const { return last_step_; }
  /// As commands have changed it.
  const TrainConfig& config() const { return now_; }
  BatchPass& pass() { return pass_; }
  WeightUpdate& update() { return update_; }
  /// Whether ranks have parts of the model, so that a whole tensor is known to all of them together alone.
  bool is_shared() const { return copy_.size() > 1; }
  /// Before a look at parameters from outside of the loop: nothing where every rank has all of them, else as
  /// Hooks::require_all_ranks.
  void require_all_ranks(const std::string& what);
  Profiler& profiler() { return profiler_; }
  /// Learning rate of the step that follows `steps_done` steps, as far as it is known now.
  double lr_at(int64_t steps_done) const;
  /// The same without what commands pin and scale.
  double scheduled_lr(int64_t steps_done) const;
  const TrainingData& data() const { return data_; }

 private:
  void take_state(const CheckpointInfo& loaded);
  void announce(Event event, Json facts = Json::object(), double grad_norm = -1);
  /// What callbacks and loggers look at in the coming step; `by_position` outlives it.
  BatchObservers observers(std::optional<LossByPosition>& by_position);
  StepMetrics metrics_now() const;
  EventInfo event_info(Event event, const StepMetrics& metrics, Json facts = Json::object()) const;
  void announce_saved();
  void wait_for_save();
  void announce_signal();
  void require_owner() const;
  /// While weights are drawn or read there is nothing to save: a signal ends this rank at once. Throws Error
  /// (128 + the signal), which the other ranks learn.
  void end_if_stopped() const;
  /// Collective: applies what callbacks and operators asked for. Throws Error (kRecipe) when one is to stop
  /// the run.
  void boundary(int wait_ms = 0);
  void wait_while_paused();
  void apply(const Command& command);
  /// Makes `controls` hold from the next step on; throws Error (kRecipe) and changes nothing when they
  /// cannot.
  void take_effect(Controls controls);
  void settle_step();
  /// Collective, when `paranoid`: what ranks have in common is alike. Their tensors are read before the first
  /// step of this process, then every hundred steps, and at the end. Throws Error (kTopology) that names what
  /// is not.
  void compare_ranks();
  bool may_update(double loss, double grad_norm);
  void record(const Batch& batch, double loss, double lr, double grad_norm, double step_s);
  /// Collective: asks a dynamic schedule for the coming step. False when Ctrl-C ended it. Throws Error
  /// (kRecipe) on all ranks when it fails on one.
  bool ask_schedule();
  /// Reports what the watch says, if anything.
  void warn_of_loss(const std::string& warning);
  void save();
  void save_last();
  /// Whether a whole multiple of `every` is passed by this step, or by one `ahead` of it.
  bool due(const std::optional<Duration>& every, int64_t ahead = 0) const;
  /// Makes all that is given in tokens, samples and epochs go on from this clock. Throws Error (kRecipe).
  void follow(const RunClock& clock);

  TrainConfig config_;  // the recipe
  TrainConfig now_;     // as commands have changed it
  RunInfo info_;
  RunClock clock_;  // of this run, and how many steps it would have if all had the present size
  int64_t clock_total_ = 0;
  TrainerContext context_;
  Communicator& copy_;        // the ranks that hold this copy of the model between them
  Communicator& data_ranks_;  // this rank, and one for each other part of the global batch
  BatchPass pass_;
  WeightUpdate update_;
  TrainingData data_;
  Schedule schedule_;
  Throughput throughput_;
  Evaluations evaluations_;
  Profiler profiler_;
  Hooks hooks_;
  TrainState state_;
  LossWatch loss_watch_;
  std::vector<HeldCommand> held_commands_;  // since resume() or load()
  std::optional<StepMetrics> last_step_;
  CommTime comm_before_;  // at the beginning of the step
  std::string stop_reason_;
  bool in_step_ = false;  // an event of a step that is not done yet is announced
  bool paused_ = false;
  bool failed_together_ = false;
  int signal_ = 0;         // that all ranks agreed to stop for, or 0
  bool compared_ = false;  // tensors, in this process
};

}  // namespace tycho
