// A whole run over an open session.
#include "trainer/session/train_to_end.h"

#include <fmt/format.h>

#include <csignal>
#include <cstring>

#include "trainer/metrics/curve.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/plot.h"

namespace tycho {
namespace {

std::string end_text(int signal, const SessionState& state, int64_t total_steps) {
  const int64_t step = state.train.step;
  if (!state.stop_reason.empty())
    return fmt::format("{} after step {}, saved; the same command goes on from there", state.stop_reason,
                       step);
  if (signal == 0 && step < total_steps)
    return fmt::format("paused after step {} of {}, saved; the same command goes on from there", step,
                       total_steps);
  if (signal == 0) return fmt::format("done, {} steps", step);
  return fmt::format("stopped by SIG{} after step {}, saved; the same command goes on from there",
                     sigabbrev_np(signal), step);
}

void draw_losses(const std::string& run_dir) {
  const PlotOptions options = {.unicode = locale_is_utf8(), .title = "loss", .x_label = "step"};
  fmt::print("\n{}", plot(read_curve(run_dir + "/metrics.jsonl", "loss"), options));
}

}  // namespace

int train_to_end(TrainingSession& session) {
  int signal = 0;
  try {
    signal = session.fit();
  } catch (const std::exception& error) {
    session.close(std::string("failed: ") + error.what());
    throw;
  }
  session.close(end_text(signal, session.state(), session.facts().run.total_steps));
  const bool wanted = session.facts().recipe.at("log").at("plot");
  if (wanted && signal == 0 && session.facts().rank == 0) draw_losses(session.facts().run.run_dir);
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace tycho
