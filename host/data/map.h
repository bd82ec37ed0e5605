// tycho data map: turns lines of any shape into rows of finetuning data with a Lua function.
#pragma once
#include "host/arguments.h"

namespace tycho {

/// Runs the subverb. `arguments` are those of `data`, with "map" as the first word.
int map_data(const Arguments& arguments);

}  // namespace tycho
