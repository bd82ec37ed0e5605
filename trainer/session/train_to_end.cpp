// Decides what is left to do, trains, and reports how the run ended.
#include "trainer/session/train_to_end.h"

#include <fmt/format.h>

#include <csignal>
#include <cstring>

#include "trainer/base/as_error.h"
#include "trainer/base/error.h"
#include "trainer/metrics/curve.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/plot.h"

namespace tycho {
namespace {

std::string end_text(int signal, const SessionState& state, int64_t total_steps) {
  const int64_t step = state.train.step;
  if (!state.stop_reason.empty())
    return fmt::format("{} after step {}, saved; the same command resumes from there", state.stop_reason,
                       step);
  if (signal == 0 && step < total_steps)
    return fmt::format("paused after step {} of {}, saved; the same command resumes from there", step,
                       total_steps);
  if (signal == 0) return fmt::format("done, {} steps", step);
  return fmt::format("stopped by SIG{} after step {}, saved; the same command resumes from there",
                     sigabbrev_np(signal), step);
}

/// Returns true when every step was done before this process began and no evaluation is left.
bool has_nothing_left(const TrainingSession& session) {
  const TrainState state = session.state().train;
  return state.step >= session.facts().run.total_steps && !state.eval_open && !state.icl_open;
}

std::string nothing_left_text(const SessionFacts& facts) {
  return fmt::format("done, nothing left to train: all {} steps are done; a longer max_duration trains on",
                     facts.run.total_steps);
}

/// Refuses to start a finished run with a different recipe, and says what to type instead.
[[noreturn]] void refuse_other_recipe(const TrainingSession& session) {
  const SessionFacts& facts = session.facts();
  const int64_t step = session.state().train.step;
  fail(ExitCode::kRecipe,
       "[run] nothing left to train: {} is at step {} of {}, and this recipe differs from the one it was "
       "trained with (trained -> requested):{}\n"
       "max_duration={}ba trains on, resume=none starts over, and run_name=NAME begins another run",
       facts.run.run_dir, step, facts.run.total_steps, facts.asks_for_other, 2 * step);
}

void draw_losses(const std::string& run_dir) {
  const PlotOptions options = {.unicode = locale_is_utf8(), .title = "loss", .x_label = "step"};
  fmt::print("\n{}", plot(read_curve(run_dir + "/metrics.jsonl", "loss"), options));
}

}  // namespace

int train_to_end(TrainingSession& session) {
  int signal = 0;
  const bool was_finished = has_nothing_left(session);
  try {
    if (was_finished && !session.facts().asks_for_other.empty()) refuse_other_recipe(session);
    signal = session.fit();
  } catch (const std::exception& error) {
    const Error own = as_error(error);
    session.close(std::string("failed: ") + own.what(), own.code());
    throw;
  }
  session.close(was_finished && signal == 0
                    ? nothing_left_text(session.facts())
                    : end_text(signal, session.state(), session.facts().run.total_steps),
                {});
  const bool wanted = session.facts().recipe.at("log").at("plot");
  if (wanted && signal == 0 && session.facts().rank == 0) draw_losses(session.facts().run.run_dir);
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace tycho
