// An error's message where another message takes it in.
#pragma once
#include <string>
#include <string_view>

namespace tycho {

/// Returns a message without the "[place] " that it begins with: the words for the middle of a sentence that
/// names its own place.
inline std::string without_place(std::string_view message) {
  const size_t end = message.starts_with('[') ? message.find("] ") : std::string_view::npos;
  return std::string(end == std::string_view::npos ? message : message.substr(end + 2));
}

}  // namespace tycho
