// Lists in messages: the first lines, and how many more there are.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tycho {

/// Returns the first `shown` lines, each indented on a line of its own, then "and 9 more" for the rest: the
/// text after a colon. Returns "" without lines.
inline std::string line_list(const std::vector<std::string>& lines, size_t shown = 3) {
  std::string text;
  for (size_t i = 0; i < std::min(lines.size(), shown); ++i) text += "\n  " + lines[i];
  if (lines.size() > shown) text += fmt::format("\n  and {} more", lines.size() - shown);
  return text;
}

}  // namespace tycho
