// What checkpoints are to the loop: where a run's state comes from, and when it is saved.
#pragma once
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/metrics/step_metrics.h"
#include "trainer/recipe/train_config.h"
#include "trainer/state/train_state.h"
#include "trainer/train/batch_pass.h"
#include "trainer/train/evaluations.h"
#include "trainer/train/hooks.h"
#include "trainer/train/live_controls.h"
#include "trainer/train/step_figures.h"
#include "trainer/train/trainer_context.h"
#include "trainer/train/training_data.h"
#include "trainer/train/weight_update.h"

namespace tycho {

/// The parts of the loop whose state a checkpoint has. All of them outlive what refers to them.
struct CheckpointedParts {
  const TrainConfig& recipe;
  RunInfo& info;
  TrainerContext& context;
  TrainState& state;
  LiveControls& controls;
  BatchPass& pass;
  WeightUpdate& update;
  TrainingData& data;
  StepFigures& figures;
  Evaluations& evaluations;
  Hooks& hooks;
};

/// Saves and takes the state of a run, and tells callbacks of both. Every function is collective. Owned by
/// the trainer's thread.
class RunCheckpoints {
 public:
  explicit RunCheckpoints(CheckpointedParts parts) : on_(parts) {}

  /// Takes first weights from the seed, or those that the recipe names; step 0.
  void initialise();
  /// Takes all state from the first of these checkpoints that can be read whole (resume.h); returns that one.
  CheckpointInfo resume(const std::vector<CheckpointInfo>& candidates);
  /// Replaces all state by that of a checkpoint of this model, which was verified.
  void load(const CheckpointInfo& info);

  /// Saves when `is_due`, when somebody asked, or when a failed save is tried again, and takes note of what
  /// is written.
  void tend(bool is_due);
  /// Saves the end of the run, unless it is saved, and waits until it is written. While that fails, tries
  /// again; a run that was `stopped` tries once.
  void save_last(bool stopped);
  /// Saves the present state, unless it is saved, and waits until it is written. Returns the checkpoint's
  /// folder.
  std::string save_now();

 private:
  void save();
  /// Waits for the newest save; `last` as in Saver::wait.
  void wait(bool last);
  void announce_saved();
  void announce(AnnouncedEvent announced);
  void take_state(const CheckpointInfo& loaded);
  void open_data();

  CheckpointedParts on_;
};

}  // namespace tycho
