// A run continues from what is saved here: its order is that of a start, a save, and a later start.
#include "trainer/train/run_checkpoints.h"

#include <csignal>
#include <cstring>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/profiler/profiler.h"
#include "trainer/rendezvous/progress.h"
#include "trainer/saving/initial_weights.h"
#include "trainer/saving/resume.h"
#include "trainer/saving/unit_tensors.h"
#include "trainer/train/run_length.h"
#include "trainer/train/train_units.h"

namespace tycho {
namespace {

/// While weights are drawn or read there is nothing to save: a signal ends this rank at once, and the others
/// learn of the Error.
void end_if_stopped(int signal) {
  if (signal != 0)
    fail(static_cast<ExitCode>(128 + signal),
         "[run] stopped by SIG{} before the first step: nothing was trained", sigabbrev_np(signal));
}

}  // namespace

void RunCheckpoints::initialise() {
  announce({Event::kSetup});
  const InPhase phase("reading weights");
  take_first_weights(on_.recipe, on_.pass.units(), [this] { end_if_stopped(on_.context.stop); });
  open_data();
  announce({Event::kLoad, {{"checkpoint", ""}}});
}

CheckpointInfo RunCheckpoints::resume(const std::vector<CheckpointInfo>& candidates) {
  announce({Event::kSetup});
  const InPhase phase("reading a checkpoint");
  const auto between = [this] { end_if_stopped(on_.context.stop); };
  load_base(on_.recipe.model, on_.pass.units().owned(), between);
  CheckpointInfo loaded =
      load_newest(candidates, saved_ranges(on_.pass.units().owned()), on_.update.optimizer(),
                  on_.context.world, on_.context.reporter, between, on_.update.average());
  on_.info.first_step = loaded.step;
  take_state(loaded);
  return loaded;
}

void RunCheckpoints::load(const CheckpointInfo& info) {
  const InPhase phase("reading a checkpoint");
  load_newest({info}, saved_ranges(on_.pass.units().owned()), on_.update.optimizer(), on_.context.world,
              on_.context.reporter, {}, on_.update.average());
  on_.context.saver.forget_requests();
  take_state(info);
}

void RunCheckpoints::take_state(const CheckpointInfo& loaded) {
  TrainState state = TrainState::from_json(loaded.manifest.at("train_state"));
  on_.controls.resume(loaded, state, on_.update);
  set_length(on_.info, on_.recipe, on_.context.until, on_.controls.clock());
  on_.update.follow(on_.controls.clock());
  on_.hooks.follow_clock();
  on_.state = std::move(state);
  process_progress().set_step(on_.state.step);
  forget_other_sets(on_.state.eval, on_.recipe.eval_data);
  on_.hooks.load_state(on_.state);
  on_.figures.restart(on_.info);
  on_.context.saver.set_resumed_from(loaded);
  on_.context.saver.forget_saved();
  open_data();
  announce({Event::kLoad, {{"checkpoint", loaded.path}}});
}

void RunCheckpoints::open_data() {
  on_.data.open(on_.state);
  on_.evaluations.open();
}

void RunCheckpoints::tend(bool is_due) {
  Saver& saver = on_.context.saver;
  if (is_due || saver.has_requests() || saver.is_retry_due(on_.state.step)) save();
  saver.poll();
  announce_saved();
}

// The disk may have room again before too much is lost.
void RunCheckpoints::save_last(bool stopped) {
  Saver& saver = on_.context.saver;
  wait(/*last=*/false);
  const bool is_due = on_.state.step > on_.info.first_step && !saver.has_saved(on_.state.step);
  if (is_due || saver.has_requests()) save();
  while (true) {
    wait(/*last=*/stopped);
    if (!saver.must_retry()) return;
    saver.wait_before_retry(on_.context.stop);
    save();
  }
}

std::string RunCheckpoints::save_now() {
  Saver& saver = on_.context.saver;
  wait(/*last=*/false);
  if (!saver.has_saved(on_.state.step) || saver.has_requests()) save();
  const InPhase phase("saving");
  wait(/*last=*/true);
  return saver.saved_path();
}

void RunCheckpoints::save() {
  // The checkpoint before this one may have become durable just now: callbacks hear of every one.
  wait(/*last=*/false);
  const Range range("checkpoint");
  const InPhase phase("saving");
  CheckpointMeta meta = on_.context.checkpoint;
  meta.step = on_.state.step;
  on_.state.clock = on_.controls.clock();
  on_.hooks.save_state(on_.state, on_.figures.newest());
  on_.state.order_marks.clear();
  if (on_.context.world.rank() == 0) on_.state.order_marks = on_.data.order_marks();
  meta.train_state = on_.state.to_json();
  on_.update.refresh_average(on_.state.step - on_.state.skipped);
  on_.context.saver.save(std::move(meta), saved_ranges(on_.pass.units().owned()), on_.update.optimizer(),
                         on_.update.average());
}

void RunCheckpoints::wait(bool last) {
  on_.context.saver.wait(last);
  announce_saved();
}

void RunCheckpoints::announce_saved() {
  for (const Json& saved : on_.context.saver.take_saved()) announce({Event::kCkptSaved, saved});
}

void RunCheckpoints::announce(AnnouncedEvent announced) {
  on_.hooks.announce(std::move(announced), on_.state.step, on_.figures.now(on_.state), on_.state.eval);
}

}  // namespace tycho
