// The LibTorch that this process has loaded, which LD_LIBRARY_PATH may have chosen.
#pragma once
#include <string>

namespace tycho {

/// Returns its version: "2.11.0".
std::string libtorch_version();

/// Returns what is wrong with a LibTorch of this version and what to do; "" if it will do.
std::string libtorch_problem(const std::string& version);

}  // namespace tycho
