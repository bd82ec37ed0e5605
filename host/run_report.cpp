// Reads run folders and prints comparisons.
#include "host/run_report.h"

#include <fmt/format.h>

#include "host/text_table.h"
#include "trainer/base/error.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/plot.h"
#include "trainer/report/run_table.h"

namespace tycho {

std::vector<RunSummary> read_runs(const std::vector<std::string>& folders) {
  if (folders.empty())
    fail(ExitCode::kUsage, "[tycho] wanted folders of runs, such as runs/demo; given none");
  std::vector<RunSummary> runs;
  for (const std::string& folder : folders) runs.push_back(summarize_run(folder));
  return runs;
}

void print_runs(const std::vector<RunSummary>& runs) {
  fmt::print("{}", text_table(run_table(runs)));
  const Curve scaling = scaling_curve(runs);
  PlotOptions options = {.unicode = locale_is_utf8()};
  if (!scaling.x.empty()) {
    options.title = "tokens per second";
    options.x_label = "ranks";
    fmt::print("\n{}", plot(scaling, options));
  } else if (runs.size() == 1 && !runs.front().losses.x.empty()) {
    options.title = "loss";
    options.x_label = "step";
    fmt::print("\n{}", plot(runs.front().losses, options));
  }
}

}  // namespace tycho
