// tycho data convert.
#pragma once
#include "host/arguments.h"

namespace tycho {

int convert_data(const Arguments& arguments);

}  // namespace tycho
