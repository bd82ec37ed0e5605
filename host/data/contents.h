// `tycho data verify`, `stats`, `sample` and `merge`: what existing data sets contain.
#pragma once
#include "host/arguments.h"

namespace tycho {

// Subverbs of `tycho data`; each returns the exit code of an orderly end and throws Error otherwise.
int verify_data(const Arguments& arguments);
int show_data_stats(const Arguments& arguments);
int show_samples(const Arguments& arguments);
int merge_data(const Arguments& arguments);

/// Throws Error (kUnusable) with the findings, unless there are none.
void report_damage(const std::vector<std::string>& findings);

}  // namespace tycho
