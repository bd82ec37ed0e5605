// tycho data preload: remote data to a disk of this machine.
#pragma once
#include "host/arguments.h"

namespace tycho {

/// Runs the subverb. `arguments` are those of `data`, with "preload" as the first word.
int preload_data(const Arguments& arguments);

}  // namespace tycho
