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

std::vector<RunSummary> read_runs(const std::vector<std::string>& folders,
                                  const std::vector<std::string>& patterns) {
  if (folders.empty())
    fail(ExitCode::kUsage, "[tycho] expected folders of runs, such as runs/demo; got none");
  std::vector<RunSummary> runs;
  for (const std::string& folder : folders) runs.push_back(summarize_run(folder, patterns));
  for (const std::string& pattern : patterns) {
    if (pattern == "*") continue;  // a run may have no metric yet
    const bool found = std::any_of(runs.begin(), runs.end(), [&](const RunSummary& run) {
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
  return runs;
}

std::map<std::string, RunSummary> read_parents(const std::vector<RunSummary>& runs,
                                               const std::vector<std::string>& patterns) {
  std::map<std::string, RunSummary> parents;
  for (const RunSummary& run : runs)
    // Its events may have been moved or removed since.
    if (!run.parent.empty() && std::filesystem::exists(run.parent + "/events.jsonl"))
      parents.try_emplace(run.parent, summarize_run(run.parent, patterns));
  return parents;
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
    fmt::print("\n{}", plot(runs.front().curve("loss"), options));
  }
}

}  // namespace tycho
