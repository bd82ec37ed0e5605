// The name of this machine.
#pragma once
#include <unistd.h>

#include <array>
#include <string>

namespace tycho {

/// Returns the name from gethostname, or "unknown".
inline std::string host_name() {
  std::array<char, 256> name{};
  const bool known = ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0';
  return known ? name.data() : "unknown";
}

}  // namespace tycho
