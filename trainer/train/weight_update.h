// How a step changes the weights: clipping, the optimizer, and the moving average of the weights.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/param_rules.h"
#include "trainer/optim/grad_clip.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/weight_average.h"
#include "trainer/recipe/ema_steps.h"
#include "trainer/recipe/optim.h"
#include "trainer/recipe/run_clock.h"
#include "trainer/recipe/train_config.h"
#include "trainer/sharding/unit_store.h"
#include "trainer/train/loop_context.h"

namespace tycho {

/// Turns the gradients in a UnitStore into new weights. Owned by the trainer's thread.
class WeightUpdate {
 public:
  /// Takes the memory of the optimizer's state and of the average. `num_samples`: of the data set. All
  /// references outlive it.
  WeightUpdate(const TrainConfig& recipe, const LoopContext& context, UnitStore& units, int64_t num_samples);

  /// Returns the norm of all gradients, and by how much `clip` scales them. Collective.
  GradNorm grad_norm(const ClipConfig& clip);
  /// Updates the weights, and their average when that is due. `steps_done`: before this one, `skipped` of
  /// them without an update. Collective where `clip` is by row.
  void step(const ClipConfig& clip, double lr, const GradNorm& norm, int64_t steps_done, int64_t skipped);
  /// Brings the weights of evaluations and exports up to date after so many updates, when the optimizer has
  /// eval_weights; a moving average is up to date always.
  void refresh_average(int64_t updates);
  /// Continues with the optimizer's numbers of `changed`; the optimizer's state stays.
  void change(const TrainConfig& changed);
  /// Counts tokens, samples and epochs of the average from this clock on.
  void follow(const RunClock& clock);

  const ParamRules& rules() const { return rules_; }
  Optimizer& optimizer() { return *optimizer_; }
  /// Null without ema or eval_weights.
  WeightAverage* average() { return average_.get(); }

 private:
  void update_average(int64_t steps_done);
  /// Returns the ranks that have parts of the same parameters; null where this one has all of each.
  Communicator* part_owners() const;

  const TrainConfig& recipe_;
  const LoopContext& context_;
  UnitStore& units_;
  int64_t num_samples_;
  ParamRules rules_;
  std::unique_ptr<Optimizer> optimizer_;
  EmaSteps ema_;
  std::unique_ptr<WeightAverage> average_;
  std::vector<Tensor> grads_;  // of what is trained
};

}  // namespace tycho
