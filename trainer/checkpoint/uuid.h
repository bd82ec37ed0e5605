// Unique names.
#pragma once
#include <string>

namespace tycho {

/// 32 hex digits from the system's random source.
std::string new_uuid();

}  // namespace tycho
