// How a sweep of 10,000 trials behaves: reading its ledger, its table, taking the next trial.
//   bench_sweep_ledger [TRIALS]
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "trainer/base/json_writer.h"
#include "trainer/sweep/claim.h"
#include "trainer/sweep/folder.h"
#include "trainer/sweep/search.h"
#include "trainer/sweep/table.h"

namespace {

using namespace tycho;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

SweepDefinition definition_of(int64_t num_trials) {
  SweepDefinition definition;
  definition.name = "bench", definition.folder = ".", definition.recipe = "r.lua";
  definition.config.recipe = "r.lua";
  AshaSearch asha;
  asha.rungs = {{300, DurationUnit::kBatch}, {900, DurationUnit::kBatch}, {2700, DurationUnit::kBatch}};
  definition.config.search.value = asha;
  definition.tree = to_json(definition.config);
  for (int64_t i = 0; i < num_trials; ++i) {
    const std::string lr = std::to_string(1e-4 * static_cast<double>(i + 1));
    const std::vector<std::string> pins = {"model.width=512", "optimizer.lr=" + lr,
                                           "optimizer.weight_decay=0.1"};
    definition.trials.push_back(
        {trial_id(pins, "r"),
         pins,
         {{"model.width", "512"}, {"optimizer.lr", lr}, {"optimizer.weight_decay", "0.1"}}});
  }
  return definition;
}

/// What a sweep in its middle has written: claims, starts and rungs of nearly all trials.
void write_ledger(const std::string& dir, int64_t num_trials) {
  SweepFolder folder(real_files(), dir);
  folder.set_definition(definition_of(num_trials));
  std::string lines;
  int64_t i = 0;
  for (const Trial& trial : folder.board().trials()) {
    if (++i > num_trials - 200) break;
    lines += ledger_line(claim_fact(trial, 1, 0, "node17", 12345)) + "\n";
    lines += ledger_line(running_fact(trial, 1)) + "\n";
    TrialEnd end{.state = TrialState::kRungDone,
                 .result = {300, 1 << 20, 3.0 + static_cast<double>(i * 7919 % 1000) / 1000}};
    end.wall_s = 61.5;
    lines += ledger_line(end_fact(trial, 1, 0, end)) + "\n";
  }
  const auto file = real_files().append(dir + "/ledger.jsonl");
  file->write(lines.data(), lines.size());
  file->close();
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t num_trials = argc > 1 ? std::atoll(argv[1]) : 10000;
  const std::string dir =
      (std::filesystem::temp_directory_path() / ("tycho-bench-" + std::to_string(getpid()))).string();
  write_ledger(dir, num_trials);
  std::printf("%lld trials, ledger of %.1f MB\n", static_cast<long long>(num_trials),
              static_cast<double>(std::filesystem::file_size(dir + "/ledger.jsonl")) / 1e6);

  auto start = Clock::now();
  SweepFolder folder(real_files(), dir);
  folder.refresh();
  const double read_ms = ms_since(start);
  const size_t rows = sweep_table(folder.board(), {}).size();
  std::printf("table: %.0f ms (%zu rows), of which reading %.0f ms\n", ms_since(start), rows, read_ms);

  constexpr int kClaims = 50;
  std::vector<double> times;
  for (int i = 0; i < kClaims; ++i) {
    start = Clock::now();
    folder.refresh();
    const auto task = next_task(folder.board(), "here");
    const auto claim = Claim::take(real_files(), dir, task->trial, task->claim);
    folder.record(claim_fact(*folder.board().find(task->trial), task->claim, task->rung, "here", getpid()),
                  false);
    times.push_back(ms_since(start));
  }
  std::sort(times.begin(), times.end());
  std::printf("claim: median %.2f ms, slowest of %d %.2f ms\n", times[kClaims / 2], kClaims, times.back());
  std::filesystem::remove_all(dir);
}
