// What stands between a terminal and text of other people. Torch-free.
#pragma once
#include <string>
#include <string_view>

namespace tycho {

/// Writes controls (base/text/terminal_controls.h) as \u001b, the way JSON does: a JSON text keeps its
/// meaning. Line ends and tabs stay. One filter for each stream: a character may come in parts.
class ControlFilter {
 public:
  /// The text up to its last whole character, made harmless.
  std::string add(std::string_view text);
  /// What was held back.
  std::string finish();

 private:
  std::string rest_;
};

}  // namespace tycho
