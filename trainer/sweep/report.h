// The report of a sweep: Markdown, and one page of HTML with drawings in it. Torch-free.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "trainer/report/growing_run.h"
#include "trainer/report/run_summary.h"
#include "trainer/sweep/folder.h"

namespace tycho {

/// Options of the page about a sweep.
struct SweepPageOptions {
  bool watched = false;  // the page reloads itself when its file has another stamp
  std::string stamp;     // different each time that the file is written; digits
};

/// The runs of a sweep whose curves pages show. Each page reads only what they have added since the last one.
class SweepRuns {
 public:
  /// Returns the run in a folder so far; nullopt when none was started there, or the folder was removed.
  std::optional<RunSummary> read(const std::string& run_dir, const std::string& metric);

 private:
  std::map<std::string, GrowingRun> runs_;  // by folder
};

struct ReportPages {
  std::string html;  // self-contained: no further files
  std::string markdown;
};

/// Makes the report.
ReportPages sweep_report(const SweepFolder& folder, SweepRuns& runs, const SweepPageOptions& options = {});

}  // namespace tycho
