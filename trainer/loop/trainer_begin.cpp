// Where a trainer begins: at fresh weights or at a checkpoint, and with which data.
#include <cstring>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/config/config_io.h"
#include "trainer/loop/trainer.h"
#include "trainer/rendezvous/progress.h"
#include "trainer/restore/initial_weights.h"
#include "trainer/restore/resume.h"
#include "trainer/restore/unit_tensors.h"
#include "trainer/units/init.h"

namespace tycho {
void Trainer::end_if_stopped() const {
  if (const int signal = context_.stop; signal != 0)
    fail(static_cast<ExitCode>(128 + signal),
         "[run] stopped by SIG{} before the first step: nothing was trained", sigabbrev_np(signal));
}

void Trainer::initialise() {
  announce(Event::kSetup);
  const InPhase phase("reading weights");
  const std::string& weights = initial_weights_path(config_.model);
  const auto between = [this] { end_if_stopped(); };
  if (!weights.empty()) load_initial_weights(weights, config_.model, pass_.units().owned(), between);
  for (const OwnedRange& range : pass_.units().owned()) {
    if (!weights.empty() && range.layout.spec().adapts < 0) continue;  // read above
    between();
    tycho::initialise(range, static_cast<uint64_t>(config_.seed));
  }
  data_.open(state_);
  evaluations_.open();
  announce(Event::kLoad, {{"checkpoint", ""}});
}

CheckpointInfo Trainer::resume(const std::vector<CheckpointInfo>& candidates) {
  announce(Event::kSetup);
  const InPhase phase("reading a checkpoint");
  const auto between = [this] { end_if_stopped(); };
  load_base(config_.model, pass_.units().owned(), between);
  CheckpointInfo loaded = load_newest(candidates, saved_ranges(pass_.units().owned()), update_.optimizer(),
                                      context_.world, context_.reporter, between, update_.average());
  info_.first_step = loaded.step;
  take_state(loaded);
  return loaded;
}

void Trainer::load(const CheckpointInfo& info) {
  const InPhase phase("reading a checkpoint");
  load_newest({info}, saved_ranges(pass_.units().owned()), update_.optimizer(), context_.world,
              context_.reporter, {}, update_.average());
  stop_reason_.clear();
  context_.saver.forget_wanted();
  paused_ = false;
  last_step_.reset();
  take_state(info);
}

void Trainer::follow(const RunClock& clock) {
  clock_ = clock;
  set_length(info_, config_, context_.until, clock);
  update_.follow(clock);
  schedule_ = make_schedule(now_, clock_total_, info_.num_samples, clock);
  hooks_.follow_clock();
}

void Trainer::take_state(const CheckpointInfo& loaded) {
  TrainState state = TrainState::from_json(loaded.manifest.at("train_state"));
  const Json recipe = config_to_json(config_);
  held_commands_ = end_changed_commands(state.controls, changes_since(loaded.manifest.at("recipe"), recipe),
                                        recipe, state.stage);
  const RunClock clock = clock_from(loaded, config_);
  if (clock != state.clock) state.controls.follow_clock(state.step, step_growth(loaded, config_));
  follow(clock);
  take_effect(std::exchange(state.controls, {}));
  const Controls controls = std::exchange(state_.controls, {});
  state_ = std::move(state);
  state_.controls = controls;
  process_progress().set_step(state_.step);
  forget_other_sets(state_.eval, config_.eval_data);
  hooks_.load_state(state_);
  throughput_ = Throughput(info_);
  loss_watch_ = LossWatch(pass_.layout().vocab_size);
  context_.saver.set_resumed_from(loaded);
  context_.saver.forget_saved();
  data_.open(state_);
  evaluations_.open();
  announce(Event::kLoad, {{"checkpoint", loaded.path}});
}

void Trainer::report_held_commands() {
  for (const HeldCommand& one : std::exchange(held_commands_, {})) {
    Json facts = {{"step", state_.step}};
    facts[one.holds ? "held_command" : kEndedCommand] = one.name;
    context_.reporter.event("warning", one.note, facts);
  }
}

}  // namespace tycho
