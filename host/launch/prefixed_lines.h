// Merges the output lines of many processes, each prefixed with its source.
#pragma once
#include <string>
#include <string_view>

namespace tycho {

/// Adds a prefix to each line of a stream that arrives in pieces.
class PrefixedLines {
 public:
  explicit PrefixedLines(std::string prefix) : prefix_(std::move(prefix)) {}

  /// Returns the prefixed lines that these bytes complete. A line of more than 64 KiB is split, each part on
  /// a line of its own.
  std::string add(std::string_view bytes);
  /// Returns the last line, with a line end added if it is missing; "" when nothing is left.
  std::string finish();

 private:
  void put_line(std::string& out, std::string_view line) const;

  std::string prefix_, rest_;
};

}  // namespace tycho
