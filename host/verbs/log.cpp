// tycho log: sends to a tracker what a run could not send.
#include <fmt/format.h>

#include <filesystem>

#include "host/verb.h"
#include "trainer/base/error.h"
#include "trainer/lock/owner_watch.h"
#include "trainer/loggers/wandb_sync.h"

namespace tycho {

const VerbSpec kLogSpec = {"log sync RUN ...",
                           "Sends what the server of t.log.wandb lacks of runs that have ended, every step "
                           "once.",
                           "  tycho log sync runs/demo",
                           {}};

namespace {

int sync_runs(const Arguments& arguments) {
  word(arguments, 1, "a run folder");
  for (size_t i = 1; i < arguments.words.size(); ++i) {
    const std::string& run = arguments.words[i];
    if (!std::filesystem::is_directory(run)) fail(ExitCode::kUnusable, "[log] no folder {}", run);
    // A run that lives sends what is missing itself.
    wait_until_unowned(run, [](const std::string& text) { fmt::print(stderr, "{}\n", text); });
    const WandbSynced synced = sync_wandb(run);
    fmt::print("{}: {} steps were missing and are sent: {}\n", run, synced.num_rows, synced.page);
  }
  return 0;
}

}  // namespace

int run_log(const Arguments& arguments) { return pick_subverb(arguments, "log", {{"sync", sync_runs}}); }

}  // namespace tycho
