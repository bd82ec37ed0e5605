// Where a trainer begins: at fresh weights or at a checkpoint, and with which data.
#include <cstring>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/config/config_io.h"
#include "trainer/config/data_stages.h"
#include "trainer/data/loader/data_order.h"
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
  if (!weights.empty()) load_initial_weights(weights, config_.model, units_->owned(), between);
  for (const OwnedRange& range : units_->owned()) {
    if (!weights.empty() && range.layout.spec().adapts < 0) continue;  // read above
    between();
    tycho::initialise(range, static_cast<uint64_t>(config_.seed));
  }
  open_data();
  announce(Event::kLoad, {{"checkpoint", ""}});
}

CheckpointInfo Trainer::resume(const std::vector<CheckpointInfo>& candidates) {
  announce(Event::kSetup);
  const InPhase phase("reading a checkpoint");
  const auto between = [this] { end_if_stopped(); };
  load_base(config_.model, units_->owned(), between);
  CheckpointInfo loaded = load_newest(candidates, saved_ranges(units_->owned()), *optimizer_, context_.world,
                                      context_.reporter, between, average_.get());
  info_.first_step = loaded.step;
  take_state(loaded);
  return loaded;
}

void Trainer::load(const CheckpointInfo& info) {
  const InPhase phase("reading a checkpoint");
  load_newest({info}, saved_ranges(units_->owned()), *optimizer_, context_.world, context_.reporter, {},
              average_.get());
  stop_reason_.clear();
  context_.saver.forget_wanted();
  paused_ = false;
  last_step_.reset();
  take_state(info);
}

void Trainer::follow(const RunClock& clock) {
  clock_ = clock;
  set_length(info_, config_, context_.until, clock);
  if (average_ != nullptr) ema_ = ema_steps(config_, clock_total_, info_.num_samples, clock);
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
  loss_watch_ = LossWatch(model_.layout().vocab_size);
  context_.saver.set_resumed_from(loaded);
  context_.saver.forget_saved();
  open_data();
  announce(Event::kLoad, {{"checkpoint", loaded.path}});
}

void Trainer::report_held_commands() {
  for (const HeldCommand& one : std::exchange(held_commands_, {})) {
    Json facts = {{"step", state_.step}};
    facts[one.holds ? "held_command" : kEndedCommand] = one.name;
    context_.reporter.event("warning", one.note, facts);
  }
}

std::unique_ptr<DataLoader> Trainer::loader_at(const DataCursor& cursor) const {
  return open_loader(cursor, state_.controls.mix);
}

std::unique_ptr<DataLoader> Trainer::open_loader(const DataCursor& cursor, const Mix& mix) const {
  LoaderShape shape;
  shape.seq_len = config_.seq_len;
  shape.global_sequences = global_batch_sequences(config_);
  shape.rank = data_ranks_.rank();
  shape.num_ranks = data_ranks_.size();
  shape.num_machines =
      machines_of_data_ranks(data_ranks_.size(), context_.world.size(), context_.num_machines);
  shape.vocab_size = model_.layout().vocab_size;
  shape.tokenizer = config_.tokenizer;
  shape.seed = static_cast<uint64_t>(config_.seed);
  return make_loader(with_mix(stage_data(config_, state_.stage), mix), shape, cursor, state_.order_marks);
}

// What a command asks for and the data cannot do is refused; what cannot be read ends the run at the next
// batch.
std::unique_ptr<DataLoader> Trainer::remixed_loader(const Mix& mix) const {
  const DataCursor next = state_.data.sample == 0 ? state_.data : DataCursor{state_.data.epoch + 1, 0};
  try {
    return open_loader(next, mix);
  } catch (const Error& error) {
    fail(ExitCode::kRecipe, "{}", error.what());
  }
}

void Trainer::enter_stage() {
  const int64_t stage = stage_at(config_, state_.step, clock_total_, clock_);
  if (stage == state_.stage) return;
  if (stage < state_.stage)
    fail(ExitCode::kUnusable,
         "[data] step {} belongs to data stage {} by the recipe, but the checkpoint is in stage {} already: "
         "stages "
         "that have begun cannot be moved",
         state_.step + 1, stage, state_.stage);
  const std::string& name = config_.data_stages[static_cast<size_t>(stage - 1)].name;
  context_.reporter.event("data", fmt::format("data stage {} begins with step {}", name, state_.step + 1),
                          {{"step", state_.step}, {"stage", name}});
  state_.stage = stage;
  state_.data = {};
  state_.controls.mix.clear();  // of other streams
  loss_watch_.restart();
  data_.reset();
  data_ = loader_at(state_.data);
}

void Trainer::open_data() {
  const InPhase phase("opening data");
  if (state_.stage > static_cast<int64_t>(config_.data_stages.size()))
    fail(ExitCode::kUnusable,
         "[data] the checkpoint is in data stage {}, but the recipe has only {} data_stages", state_.stage,
         config_.data_stages.size());
  data_ = loader_at(state_.data);
  evaluations_.open();
}

}  // namespace tycho
