// tycho bench step and tycho bench scale.
#pragma once
#include "host/arguments.h"

namespace tycho {

/// Returns the words after "step" as the arguments of a verb of its own: a recipe and its pins.
Arguments without_subverb(Arguments arguments);

/// Measures a recipe on this machine: steady tokens per second, MFU, and time by part.
int bench_step(const Arguments& arguments);
/// Prints the table of finished runs on several numbers of ranks.
int bench_scale(const Arguments& arguments);

}  // namespace tycho
