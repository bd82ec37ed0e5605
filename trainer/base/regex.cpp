// The one source that has <regex>.
#include "trainer/base/regex.h"

#include <regex>

namespace tycho {

struct Regex::Compiled {
  std::regex regex;
};

Regex::Regex(const std::string& text) {
  try {
    compiled_ = std::make_shared<const Compiled>(Compiled{std::regex(text)});
  } catch (const std::regex_error& error) {
    problem_ = error.what();
  }
}

bool Regex::is_found_in(const std::string& text) const {
  return compiled_ != nullptr && std::regex_search(text, compiled_->regex);
}

bool Regex::matches_all_of(const std::string& text) const {
  return compiled_ != nullptr && std::regex_match(text, compiled_->regex);
}

std::string Regex::replaced_in(const std::string& text, const std::string& by) const {
  return compiled_ == nullptr ? text : std::regex_replace(text, compiled_->regex, by);
}

}  // namespace tycho
