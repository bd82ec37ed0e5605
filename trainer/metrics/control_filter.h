// Keeps terminal controls in foreign text from reaching a terminal. Torch-free.
#pragma once
#include <string>
#include <string_view>

namespace tycho {

/// Writes controls (base/text/terminal_controls.h) as \u001b, like JSON, so that a JSON text keeps its
/// meaning. Line ends and tabs stay. Use one filter for each stream, since a character may arrive in parts.
class ControlFilter {
 public:
  /// Returns the escaped text up to its last whole character, and keeps the rest.
  std::string add(std::string_view text);
  /// Returns the rest that was kept.
  std::string finish();

 private:
  std::string rest_;
};

}  // namespace tycho
