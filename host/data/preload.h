// tycho data preload: remote data to a disk of this machine.
#pragma once
#include "host/arguments.h"

namespace tycho {

/// The subverb; `arguments` as data has them, with "preload" as their first word.
int preload_data(const Arguments& arguments);

}  // namespace tycho
