// The recipe as commands have changed it during a run, and the lengths and learning rates that follow from
// it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/duration.h"
#include "trainer/callbacks/command.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/metrics/reporter.h"
#include "trainer/profiler/profiler.h"
#include "trainer/recipe/run_clock.h"
#include "trainer/recipe/schedule.h"
#include "trainer/recipe/train_config.h"
#include "trainer/saving/saver.h"
#include "trainer/state/loss_watch.h"
#include "trainer/state/train_state.h"
#include "trainer/train/hooks.h"
#include "trainer/train/training_data.h"
#include "trainer/train/weight_update.h"
#include "trainer/train/with_controls.h"

namespace tycho {

/// Reasons for the loop not to continue with the next step.
struct Halt {
  int signal = 0;      // signal that all ranks agreed to stop for, or 0
  std::string reason;  // of a command that stopped the run, or ""
  bool paused = false;
  bool stops() const { return signal != 0 || !reason.empty(); }
};

/// The parts of the loop that commands act on.
struct CommandTargets {
  TrainingData& data;
  WeightUpdate& update;
  Hooks& hooks;
  Saver& saver;
  Profiler& profiler;
  LossWatch& loss_watch;
  Reporter& reporter;
  Halt& halt;
};

/// Applies commands. What they change for longer than a step is kept in TrainState::controls, and so in
/// checkpoints. Owned by the trainer's thread.
class LiveControls {
 public:
  /// `num_samples`: of the data set. The recipe and the state outlive it.
  LiveControls(const TrainConfig& recipe, int64_t num_samples, TrainState& state);

  /// Applies a command between two steps. Throws Error (kRecipe) and changes nothing when the run cannot
  /// follow it.
  void apply(const Command& command, const CommandTargets& targets);
  /// Applies commands in their order, and reports of each what it did or why it was rejected, to operators
  /// too. Throws what is not Error (kRecipe).
  void apply_all(const std::vector<Command>& commands, const CommandTargets& targets);
  /// Takes the clock and the controls of a checkpoint whose state is `state`, but for commands on keys that
  /// the recipe has changed since; `state.controls` are those that hold. Throws Error (kRecipe) when they
  /// do not fit the recipe.
  void resume(const CheckpointInfo& checkpoint, TrainState& state, WeightUpdate& update);
  /// Reports, once, which commands hold after resume(), and which have ended.
  void report_held(Reporter& reporter);

  /// The recipe with the changes made by commands.
  const TrainConfig& now() const { return now_; }
  const RunClock& clock() const { return clock_; }
  /// Returns a length from now on as steps.
  double steps_of(const Duration& length) const;
  /// Returns true when a whole multiple of `every` is passed by the newest step, or by one `ahead` of it.
  bool is_due(const std::optional<Duration>& every, int64_t ahead = 0) const;
  /// Returns the data stage of the next step.
  int64_t stage() const;

  /// Returns the learning rate of the step that follows `steps_done` steps; `factor` is what a dynamic
  /// schedule multiplies it by.
  double lr_at(int64_t steps_done, double factor) const;
  /// Returns lr_at() without what commands pin and scale.
  double scheduled_lr(int64_t steps_done, double factor) const;

 private:
  /// Applies `controls` from the next step on. Throws Error (kRecipe) and changes nothing when they are
  /// invalid.
  void take(Controls controls, WeightUpdate& update);
  Schedule schedule_of(const TrainConfig& config) const;

  const TrainConfig& recipe_;
  TrainState& state_;
  int64_t num_samples_;
  int64_t total_;  // steps that the run would have if all had the present size
  RunClock clock_;
  TrainConfig now_;
  Schedule schedule_;
  std::vector<HeldCommand> held_;  // since resume()
};

/// True if apply() has an effect for the command.
bool is_applied(const CommandSpec& spec);

}  // namespace tycho
