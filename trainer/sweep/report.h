// The report of a sweep: Markdown, and one page of HTML with drawings in it. Torch-free.
#pragma once
#include <string>

#include "trainer/sweep/folder.h"

namespace tycho {

struct ReportPages {
  std::string html;  // self-contained: no scripts, no further files
  std::string markdown;
};

/// Makes the report. Reads the runs' folders for their curves.
ReportPages sweep_report(const SweepFolder& folder);

}  // namespace tycho
