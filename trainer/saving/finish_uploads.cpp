// Ranks look together, so that all of them leave for the same reason.
#include "trainer/saving/finish_uploads.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "trainer/base/seconds_since.h"
#include "trainer/comm/collective_strings.h"
#include "trainer/rendezvous/progress.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLookAgain = std::chrono::milliseconds(20);
constexpr double kSayAgain_s = 10;

bool holds(const std::vector<std::string>& all, const std::string& word) {
  return std::find(all.begin(), all.end(), word) != all.end();
}

}  // namespace

void report_uploads(CheckpointUploads& uploads, Reporter& reporter) {
  for (const UploadEvent& event : uploads.take_events()) reporter.event(event.kind, event.text, event.facts);
}

void finish_uploads(CheckpointUploads& uploads, Communicator& world, Reporter& reporter,
                    const std::atomic<int>& stop, int ended_by) {
  const InPhase phase("uploading checkpoints");
  const double patience_s = ended_by != 0 ? kStoppedUploadPatience_s : kUploadPatience_s;
  const std::string kStopped = "stopped", kBusy = "busy", kStuck = "stuck";
  auto moved = Clock::now(), said = moved;  // an ordinary end says nothing
  int64_t progress = uploads.progress();
  std::string why;
  while (true) {
    report_uploads(uploads, reporter);
    if (const int64_t now = uploads.progress(); now != progress) progress = now, moved = Clock::now();
    const bool is_stopped = ended_by == SIGINT || (ended_by == 0 && stop != 0);
    const bool is_busy = uploads.num_behind() > 0;
    const std::vector<std::string> all =
        all_gather_strings(world, is_busy && is_stopped                          ? kStopped
                                  : is_busy && seconds_since(moved) > patience_s ? kStuck
                                  : is_busy                                      ? kBusy
                                                                                 : std::string());
    const bool stuck = std::all_of(all.begin(), all.end(),
                                   [&](const std::string& one) { return one.empty() || one == kStuck; });
    if (std::all_of(all.begin(), all.end(), [](const std::string& one) { return one.empty(); })) return;
    if (holds(all, kStopped) || stuck) {
      why = holds(all, kStopped) ? "the wait was stopped"
                                 : fmt::format("nothing was stored for {:.0f} s", patience_s);
      break;
    }
    if (seconds_since(said) > kSayAgain_s && is_busy) {
      said = Clock::now();
      reporter.screen_warning(fmt::format(
          "still uploading: {}. Ctrl-C leaves now; the next start continues them", uploads.behind_text()));
    }
    std::this_thread::sleep_for(kLookAgain);
  }
  if (uploads.num_behind() > 0)
    reporter.event(
        "warning",
        fmt::format("not everything is uploaded, because {}: {}. It is in this run's folder, and the "
                    "same command continues the uploads",
                    why, uploads.behind_text()),
        {{"behind", uploads.num_behind()}});
}

}  // namespace tycho
