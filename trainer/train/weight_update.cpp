// An optimizer is made again when its rules change; its state waits in host memory meanwhile.
#include "trainer/train/weight_update.h"

#include "trainer/comm/mesh.h"
#include "trainer/layout/model_layout.h"
#include "trainer/optim/make_optimizer.h"
#include "trainer/optim/segments.h"
#include "trainer/profiler/range.h"

namespace tycho {

WeightUpdate::WeightUpdate(const TrainConfig& recipe, const LoopContext& context, UnitStore& units,
                           int64_t num_samples)
    : recipe_(recipe),
      context_(context),
      units_(units),
      num_samples_(num_samples),
      rules_(param_rules(recipe.optimizer, recipe.param_groups, model_layout(recipe.model).units)),
      optimizer_(make_optimizer(recipe.optimizer, units.owned(), rules_, static_cast<uint64_t>(recipe.seed),
                                part_owners())),
      average_(keeps_average(recipe)
                   ? std::make_unique<WeightAverage>(units.owned(), rules_, evaluates_ema(recipe))
                   : nullptr),
      grads_(trained_grads(units.owned(), rules_)) {
  follow({});
}

GradNorm WeightUpdate::grad_norm(const ClipConfig& clip) {
  const Range range("gradient norm");
  const bool is_canonical = recipe_.parallel.reduce == GradientOrder::kCanonical;
  return clip_gradients(clip, grads_, context_.mesh.group(kCopyAxes),
                        is_canonical ? SquareSum::kExact : SquareSum::kFast);
}

void WeightUpdate::step(const ClipConfig& clip, double lr, const GradNorm& norm, int64_t steps_done,
                        int64_t skipped) {
  const Range range("optimizer");
  clip_in_place(clip, units_.owned(), rules_, context_.mesh.group(kPartAxes));
  optimizer_->step(lr, steps_done + 1 - skipped, norm.scale_1);
  if (recipe_.ema.is_used()) update_average(steps_done + 1);
}

void WeightUpdate::refresh_average(int64_t updates) {
  if (!has_eval_weights(recipe_.optimizer)) return;
  if (updates == 0) return average_->begin();
  average_->fill(
      [&](const std::vector<StateBuffer>& state) { optimizer_->write_eval_weights(updates, state); });
}

// As torch's AveragedModel: the first update copies the weights.
void WeightUpdate::update_average(int64_t steps_done) {
  if (steps_done < ema_.start || !passes_on_clock(static_cast<double>(steps_done) + ema_.lead, ema_.every))
    return;
  if (average_->has_begun())
    average_->update(ema_.decay);
  else
    average_->begin();
}

// Segments are stretches of parameters with the same rule, so another rule makes them again. The state waits
// in host memory: a device would not hold two of them.
void WeightUpdate::change(const TrainConfig& changed) {
  std::vector<Tensor> kept;
  for (const StateBuffer& buffer : optimizer_->state())
    kept.push_back(buffer.flat.to(at::kCPU, /*non_blocking=*/false, /*copy=*/true));
  optimizer_.reset();
  rules_ = param_rules(changed.optimizer, changed.param_groups, model_layout(changed.model).units);
  optimizer_ = make_optimizer(changed.optimizer, units_.owned(), rules_, static_cast<uint64_t>(changed.seed),
                              part_owners());
  const std::vector<StateBuffer> state = optimizer_->state();
  for (size_t i = 0; i < kept.size(); ++i) state[i].flat.copy_(kept[i]);
}

void WeightUpdate::follow(const RunClock& clock) {
  if (recipe_.ema.is_used())
    ema_ = ema_steps(recipe_, total_steps(recipe_, num_samples_), num_samples_, clock);
}

Communicator* WeightUpdate::part_owners() const {
  Communicator& owners = context_.mesh.group(kPartAxes);
  return owners.size() > 1 ? &owners : nullptr;
}

}  // namespace tycho
