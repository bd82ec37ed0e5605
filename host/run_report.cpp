// Reads run folders and prints comparisons.
#include "host/run_report.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>

#include "host/text_table.h"
#include "trainer/base/error.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/plot.h"
#include "trainer/report/run_table.h"

namespace tycho {

RunFollower::RunFollower(const std::vector<std::string>& folders, std::vector<std::string> patterns)
    : patterns_(std::move(patterns)) {
  if (folders.empty())
    fail(ExitCode::kUsage, "[tycho] expected folders of runs, such as runs/demo; got none");
  for (const std::string& folder : folders) readers_.emplace_back(folder, patterns_);
}

void RunFollower::update() {
  runs_.clear(), parents_.clear();
  for (GrowingRun& reader : readers_) {
    reader.update();
    runs_.push_back(reader.summary());
  }
  for (const RunSummary& run : runs_) {
    // Files of events may have been moved or removed since.
    if (run.parent.empty() || !std::filesystem::exists(run.parent + "/events.jsonl")) continue;
    GrowingRun& reader =
        parent_readers_.try_emplace({run.parent, run.first_step}, run.parent, patterns_, run.first_step)
            .first->second;
    reader.update();
    parents_[run.folder] = reader.summary();
  }
  for (const std::string& pattern : patterns_) {
    if (pattern == "*") continue;  // a run may have no metric yet
    const bool found = std::any_of(runs_.begin(), runs_.end(), [&](const RunSummary& run) {
      return std::any_of(run.curves.begin(), run.curves.end(), [&](const auto& curve) {
        return ::fnmatch(pattern.c_str(), curve.first.c_str(), 0) == 0;
      });
    });
    if (!found)
      fail(ExitCode::kUsage,
           "[tycho report] --plot expected metrics of these runs, got '{}', which none has; the keys of "
           "metrics.jsonl are their names",
           pattern);
  }
}

void print_runs(const std::vector<RunSummary>& runs) {
  fmt::print("{}", text_table(run_table(runs)));
  const Curve scaling = scaling_curve(runs);
  PlotOptions options = {.unicode = locale_is_utf8()};
  if (!scaling.x.empty()) {
    options.title = "tokens per second";
    options.x_label = "ranks";
    fmt::print("\n{}", plot(scaling, options));
  } else if (runs.size() == 1 && !runs.front().curve("loss").x.empty()) {
    options.title = "loss";
    options.x_label = "step";
    const ThinCurve& loss = runs.front().curve("loss");
    fmt::print("\n{}", plot({loss.x, loss.mean}, options));
  }
}

}  // namespace tycho
