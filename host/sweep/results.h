// What `tycho sweep table|best|report|plan` print.
#pragma once
#include "host/arguments.h"
#include "host/sweep/start.h"
#include "trainer/sweep/folder.h"

namespace tycho {

int sweep_table_verb(const Arguments& arguments);
int sweep_best_verb(const Arguments& arguments);
int sweep_report_verb(const Arguments& arguments);
/// The trials of a sweep that is not started, and what they will take.
void print_sweep_plan(const PreparedSweep& sweep);
/// The first rows of the table, the verdict, and what to type next.
void print_sweep_end(const SweepFolder& folder);

}  // namespace tycho
