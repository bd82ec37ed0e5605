// Places of this machine that programs of recipes need. The emulated GPU of tests has its own.
#pragma once
#include <string>
#include <vector>

namespace tycho::cuda {

/// Returns names and paths of libnvrtc in the order in which they are tried.
std::vector<std::string> own_nvrtc_paths();

/// Returns the user's folder of compiled programs, $XDG_CACHE_HOME/tycho/programs or
/// ~/.cache/tycho/programs; "" where neither variable is set.
std::string program_folder();

}  // namespace tycho::cuda
