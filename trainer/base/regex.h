// Regular expressions in RE2's syntax: Python's without lookaround and backreferences, so that no pattern
// takes more than linear time. (https://github.com/google/re2/wiki/Syntax)
#pragma once
#include <memory>
#include <string>

namespace tycho {

/// A compiled pattern. Copyable; usable from any thread.
class Regex {
 public:
  /// Never throws: a pattern that is invalid or longer than 4096 bytes matches nothing, and problem() says
  /// why.
  explicit Regex(const std::string& text);

  /// Returns why the pattern is invalid; "" when it is valid.
  const std::string& problem() const { return problem_; }
  bool is_found_in(const std::string& text) const;
  bool matches_all_of(const std::string& text) const;
  /// Returns `text` with every match replaced; \1 to \9 in `by` stand for groups.
  std::string replaced_in(const std::string& text, const std::string& by) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;  // null when there is a problem
  std::string problem_;
};

}  // namespace tycho
