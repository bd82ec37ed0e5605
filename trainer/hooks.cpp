// What hooks into the loop.
#include "trainer/hooks.h"

#include "trainer/parallel/gather_texts.h"

namespace tycho {
namespace {

RunnerContext context_of(const TrainConfig& config, const RunInfo& run, Communicator& world, const at::Device& device,
                         Reporter& reporter, Dist* dist) {
  return {.rank = world.rank(),
          .reporter = reporter,
          .gather = [&world, device](const std::string& mine) { return gather_texts(world, device, mine); },
          .dist = dist,
          .in_steps = [&config, &run](const Duration& length) {
            return in_steps(length, config, run.total_steps, run.num_samples);
          }};
}

}  // namespace

Hooks::Hooks(const TrainConfig& config, const RunInfo& run, CallbackSource* source, Communicator& world,
             const at::Device& device, Reporter& reporter)
    : run_(run),
      dist_(make_dist(world, device)),
      runner_(source != nullptr ? source->callbacks() : std::vector<Callback>(),
              context_of(config, run, world, device, reporter, dist_.get())),
      schedule_(source != nullptr ? source->schedule() : nullptr) {
  if (source == nullptr && !config.callbacks.empty())
    reporter.event("warning", "the recipe's callbacks do not run here", {{"callbacks", config.callbacks.size()}});
}

Hooks::Boundary Hooks::boundary(int64_t step, std::vector<Command> operators) {
  Boundary result;
  result.commands = runner_.boundary(step, std::move(operators), result.failure);
  return result;
}

double Hooks::factor(int64_t steps_done, const std::optional<StepMetrics>& last) {
  if (!schedule_) return 1;
  const std::optional<double> loss = last ? std::optional<double>(last->loss) : std::nullopt;
  return factor_ = schedule_->factor(steps_done, run_.total_steps, loss);
}

void Hooks::save_state(TrainState& state) const {
  state.callbacks = runner_.state();
  state.controls.enabled = runner_.switched();
  if (schedule_) state.schedule = schedule_->state();
}

void Hooks::load_state(const TrainState& state) {
  runner_.set_state(state.callbacks, state.controls.enabled);
  if (schedule_ && !state.schedule.is_null()) schedule_->set_state(state.schedule);
}

}  // namespace tycho
