// Merges the output lines of many processes, each prefixed with its source.
#pragma once
#include <string>
#include <string_view>

namespace tycho {

/// Puts a prefix before each line of a stream that comes in pieces.
class PrefixedLines {
 public:
  explicit PrefixedLines(std::string prefix) : prefix_(std::move(prefix)) {}

  /// The lines that end in these bytes, marked. A line of more than 64 KiB comes in parts, each as a line.
  std::string add(std::string_view bytes);
  /// The last line when its end is missing, with one; "" when nothing is left.
  std::string finish();

 private:
  void put_line(std::string& out, std::string_view line) const;

  std::string prefix_, rest_;
};

}  // namespace tycho
