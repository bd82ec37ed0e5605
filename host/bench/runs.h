// tycho bench step and tycho bench scale.
#pragma once
#include "host/arguments.h"

namespace tycho {

/// What follows the word "step" as the arguments of a verb of its own: a recipe and its pins.
Arguments without_subverb(Arguments arguments);

/// Steady tokens per second, MFU and where the time goes, of a recipe on this machine.
int bench_step(const Arguments& arguments);
/// The table of runs that were made on several numbers of ranks.
int bench_scale(const Arguments& arguments);

}  // namespace tycho
