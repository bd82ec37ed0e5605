// Says which headers a binary was built from. Torch-free.
#pragma once
#include <array>

namespace tycho {

/// A hash of all headers that cross the border between `tycho` and libtycho_engine.so, as hexadecimal text.
struct BuildId {
  std::array<char, 17> text;  // with its final zero
  bool operator==(const BuildId&) const = default;
};

/// Returns the build id of the binary that calls it. The build generates the definition
/// (cmake/BuildId.cmake).
BuildId this_build();

}  // namespace tycho
