// The one source that has <regex>.
#include "trainer/base/pattern.h"

#include <regex>

namespace tycho {

struct Pattern::Compiled {
  std::regex regex;
};

Pattern::Pattern(const std::string& text) {
  try {
    compiled_ = std::make_shared<const Compiled>(Compiled{std::regex(text)});
  } catch (const std::regex_error& error) {
    problem_ = error.what();
  }
}

bool Pattern::is_found_in(const std::string& text) const {
  return compiled_ != nullptr && std::regex_search(text, compiled_->regex);
}

bool Pattern::matches_all_of(const std::string& text) const {
  return compiled_ != nullptr && std::regex_match(text, compiled_->regex);
}

std::string Pattern::replaced_in(const std::string& text, const std::string& by) const {
  return compiled_ == nullptr ? text : std::regex_replace(text, compiled_->regex, by);
}

}  // namespace tycho
