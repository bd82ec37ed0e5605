// The report of a sweep: Markdown, and one page of HTML with drawings in it. Torch-free.
#pragma once
#include <string>

#include "trainer/sweep/folder.h"
#include "trainer/sweep/sweep_runs.h"

namespace tycho {

struct ReportPages {
  std::string html;  // self-contained: no further files
  std::string markdown;
};

/// Makes the report.
ReportPages sweep_report(const SweepFolder& folder, SweepRuns& runs, const SweepPageOptions& options = {});

}  // namespace tycho
