// The report of a sweep: Markdown, and one page of HTML with drawings in it. Torch-free.
#pragma once
#include <string>

#include "trainer/sweep/folder.h"

namespace tycho {

/// Options of the page about a sweep.
struct SweepPageOptions {
  bool watched = false;  // the page reloads itself when its file has another stamp
  std::string stamp;     // different each time that the file is written; digits
};

struct ReportPages {
  std::string html;  // self-contained: no further files
  std::string markdown;
};

/// Makes the report. Reads the runs' folders for their curves.
ReportPages sweep_report(const SweepFolder& folder, const SweepPageOptions& options = {});

}  // namespace tycho
