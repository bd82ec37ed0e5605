// tycho data map: turns lines of any shape into rows of finetuning data with a Lua function.
#pragma once
#include "host/arguments.h"

namespace tycho {

/// The subverb; `arguments` as data has them, with "map" as their first word.
int map_data(const Arguments& arguments);

}  // namespace tycho
