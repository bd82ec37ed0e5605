// The name of a run in paths that a recipe gives.
#pragma once
#include <string>

namespace tycho {

/// What stands for the name in a path: "runs/{run_name}".
inline constexpr const char* kRunNameMark = "{run_name}";

/// The path with the name in place of every {run_name}.
std::string with_run_name(std::string path, const std::string& run_name);

/// Whether anything but {run_name} stands in braces.
bool has_other_braces(const std::string& path);

}  // namespace tycho
