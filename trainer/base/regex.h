// Regular expressions in RE2's syntax: Python's without lookaround and backreferences, so that no pattern
// takes more than linear time. (https://github.com/google/re2/wiki/Syntax)
#pragma once
#include <memory>
#include <string>

namespace tycho {

/// May be copied, and used from any thread.
class Regex {
 public:
  /// A text that is not a regular expression, or one longer than 4096 bytes, matches nothing, and problem()
  /// says why.
  explicit Regex(const std::string& text);

  /// Empty when the pattern is valid.
  const std::string& problem() const { return problem_; }
  bool is_found_in(const std::string& text) const;
  bool matches_all_of(const std::string& text) const;
  /// `text` with every match replaced; \1 to \9 in `by` stand for groups.
  std::string replaced_in(const std::string& text, const std::string& by) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;  // none when there is a problem
  std::string problem_;
};

}  // namespace tycho
