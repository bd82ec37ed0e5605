// Patterns that name files of a data set, as fsspec's glob and the library `datasets` read them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tycho {

/// A pattern of paths with slashes: * within a name, ? for one character, [a-c] and [!a-c] for one of some,
/// ** as a whole name for any number of folders. Paths with a hidden name (.git/x), or in a folder that
/// begins with __, match only where the pattern spells as many such names. Files that describe a data set,
/// such as README.md, match only by their own name.
class PathPattern {
 public:
  /// Throws Error (kUnusable) for ** as a part of a name.
  explicit PathPattern(const std::string& pattern);
  bool matches(const std::string& path) const;
  /// True if the pattern has a wildcard.
  bool has_magic() const { return has_magic_; }

 private:
  bool fits(std::string_view path) const;
  std::vector<std::string> parts_;
  int num_hidden_ = 0, num_special_ = 0;
  bool has_magic_;
};

}  // namespace tycho
