// Compiled programs on disk, so that a run after the first compiles nothing.
#pragma once
#include <functional>
#include <string>

namespace tycho::cuda {

/// Returns what make() returned for that key, now or in an earlier process. A file that is damaged is made
/// again. A folder that cannot be written is not used. Any thread, any number of processes.
std::string cached_program(const std::string& folder, const std::string& key,
                           const std::function<std::string()>& make);

}  // namespace tycho::cuda
