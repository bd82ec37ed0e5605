// Where a trainer begins: at fresh weights or at a checkpoint, and with which data.
#include <cstring>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/loop/trainer.h"
#include "trainer/rendezvous/progress.h"
#include "trainer/restore/initial_weights.h"
#include "trainer/restore/resume.h"
#include "trainer/units/init.h"

namespace tycho {
namespace {

/// Sets that the recipe no longer names are forgotten, and the total with them: over other sets it is another
/// number.
void keep_sets(EvalRecords& records, const EvalData& sets) {
  const size_t before = records.sets.size();
  std::erase_if(records.sets, [&](const auto& one) { return !sets.contains(one.first); });
  if (before != sets.size() || records.sets.size() != sets.size()) records.total.reset();
}

}  // namespace

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
    if (!weights.empty()) break;
    between();
    tycho::initialise(range, static_cast<uint64_t>(config_.seed));
  }
  open_data();
  announce(Event::kLoad, {{"checkpoint", ""}});
}

CheckpointInfo Trainer::resume(const std::vector<CheckpointInfo>& candidates) {
  announce(Event::kSetup);
  const InPhase phase("reading a checkpoint");
  CheckpointInfo loaded = load_newest(candidates, units_->owned(), *optimizer_, context_.world,
                                      context_.reporter, [this] { end_if_stopped(); });
  info_.first_step = loaded.step;
  take_state(loaded);
  return loaded;
}

void Trainer::load(const CheckpointInfo& info) {
  const InPhase phase("reading a checkpoint");
  load_newest({info}, units_->owned(), *optimizer_, context_.world, context_.reporter);
  stop_reason_.clear();
  context_.saver.forget_wanted();
  paused_ = false;
  last_step_.reset();
  take_state(info);
}

void Trainer::take_state(const CheckpointInfo& loaded) {
  TrainState state = TrainState::from_json(loaded.manifest.at("train_state"));
  take_effect(std::exchange(state.controls, {}));
  const Controls controls = std::exchange(state_.controls, {});
  state_ = std::move(state);
  state_.controls = controls;
  process_progress().set_step(state_.step);
  keep_sets(state_.eval, config_.eval_data);
  hooks_.load_state(state_);
  throughput_ = Throughput(info_);
  context_.saver.set_resumed_from(loaded);
  context_.saver.forget_saved();
  open_data();
  announce(Event::kLoad, {{"checkpoint", loaded.path}});
}

std::unique_ptr<DataLoader> Trainer::loader_at(const DataCursor& cursor) const {
  LoaderShape shape;
  shape.seq_len = config_.seq_len;
  shape.global_sequences = global_batch_sequences(config_);
  shape.rank = context_.mesh.group(kDataAxes).rank();
  shape.num_ranks = context_.mesh.group(kDataAxes).size();
  shape.vocab_size = model_.layout().vocab_size;
  shape.tokenizer = config_.tokenizer;
  shape.seed = static_cast<uint64_t>(config_.seed);
  return make_loader(config_.train_data, shape, cursor);
}

void Trainer::open_data() {
  const InPhase phase("opening data");
  data_ = loader_at(state_.data);
  evaluators_.clear();
  for (const auto& [name, data] : config_.eval_data)
    evaluators_.try_emplace(name, data, config_.eval.batches * global_batch_sequences(config_), micro_shape_,
                            model_, context_.world, context_.device, config_.tokenizer);
}

}  // namespace tycho
