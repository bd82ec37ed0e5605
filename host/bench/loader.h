// `tycho bench data`: reads a recipe's training data as a run would.
#pragma once
#include "host/arguments.h"

namespace tycho {

/// Returns the exit code of an orderly end. Throws Error otherwise.
int bench_data_verb(const Arguments& arguments);

}  // namespace tycho
