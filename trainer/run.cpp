// One run from request to exit.
#include "trainer/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "trainer/metrics/curve.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/plot.h"
#include "trainer/open_session.h"

namespace tycho {
namespace {

std::string end_text(int signal, const SessionState& state) {
  const int64_t step = state.train.step;
  if (!state.stop_reason.empty())
    return fmt::format("{} after step {}, saved; the same command goes on from there", state.stop_reason,
                       step);
  if (signal == 0) return fmt::format("done, {} steps", step);
  return fmt::format("stopped by SIG{} after step {}, saved; the same command goes on from there",
                     sigabbrev_np(signal), step);
}

void draw_losses(const std::string& run_dir) {
  const PlotOptions options = {.unicode = locale_is_utf8(), .title = "loss", .x_label = "step"};
  fmt::print("\n{}", plot(read_curve(run_dir + "/metrics.jsonl", "loss"), options));
}

}  // namespace

int run_training(const RunRequest& request, bool tty, const std::atomic<int>& stop) {
  const std::unique_ptr<TrainingSession> session = open_session(
      request, tty ? make_terminal_reporter(STDOUT_FILENO) : make_plain_reporter(STDOUT_FILENO), stop);
  int signal = 0;
  try {
    signal = session->fit();
  } catch (const std::exception& error) {
    session->close(std::string("failed: ") + error.what());
    throw;
  }
  session->close(end_text(signal, session->state()));
  if (session->facts().recipe.at("log").at("plot").get<bool>() && signal == 0)
    draw_losses(session->facts().run.run_dir);
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace tycho
