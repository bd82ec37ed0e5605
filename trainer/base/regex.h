// Regular expressions, ECMAScript's as std::regex has them: compiled in one place, since <regex> costs every
// source that has it seconds of its build.
#pragma once
#include <memory>
#include <string>

namespace tycho {

/// May be copied, and used from any thread.
class Regex {
 public:
  /// A text that is no regular expression matches nothing, and problem() says why.
  explicit Regex(const std::string& text);

  /// "" when there is none.
  const std::string& problem() const { return problem_; }
  bool is_found_in(const std::string& text) const;
  bool matches_all_of(const std::string& text) const;
  /// `text` with every place where it is found replaced.
  std::string replaced_in(const std::string& text, const std::string& by) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;  // none when there is a problem
  std::string problem_;
};

}  // namespace tycho
