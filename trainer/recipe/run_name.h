// The name of a run in paths that a recipe gives.
#pragma once
#include <string>

namespace tycho {

/// Stands for the run's name in a path: "runs/{run_name}".
inline constexpr const char* kRunNameMark = "{run_name}";

/// Returns the path with every {run_name} replaced.
std::string with_run_name(std::string path, const std::string& run_name);

/// Returns true when braces contain anything but {run_name}.
bool has_other_braces(const std::string& path);

}  // namespace tycho
