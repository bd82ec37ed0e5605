// The output of `tycho sweep table|best|report|plan`.
#pragma once
#include "host/arguments.h"
#include "host/sweep/start.h"
#include "trainer/sweep/folder.h"

namespace tycho {

int sweep_table_verb(const Arguments& arguments);
int sweep_best_verb(const Arguments& arguments);
int sweep_report_verb(const Arguments& arguments);
/// Prints the trials of a sweep that is not started, and their cost.
void print_sweep_plan(const PreparedSweep& sweep);
/// Prints the first rows of the table, the verdict, and the commands to type next.
void print_sweep_end(const SweepFolder& folder);

}  // namespace tycho
