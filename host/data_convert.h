// tycho data convert.
#pragma once
#include "host/verb.h"

namespace tycho {

int convert_data(const Arguments& arguments);

}  // namespace tycho
