// The only source that uses RE2, whose time and memory are linear in the text for every pattern.
#include "trainer/base/regex.h"

#include <re2/re2.h>

namespace tycho {
namespace {

constexpr size_t kMaxPatternBytes = 4096;
constexpr int64_t kMaxMemoryBytes = int64_t{8} << 20;

re2::RE2::Options quiet_options() {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMaxMemoryBytes);
  return options;
}

}  // namespace

struct Regex::Compiled {
  explicit Compiled(const std::string& text) : regex(text, quiet_options()) {}
  re2::RE2 regex;
};

Regex::Regex(const std::string& text) {
  if (text.size() > kMaxPatternBytes) {
    problem_ = "it is longer than " + std::to_string(kMaxPatternBytes) + " bytes";
    return;
  }
  auto compiled = std::make_shared<const Compiled>(text);
  if (compiled->regex.ok())
    compiled_ = std::move(compiled);
  else
    problem_ = compiled->regex.error();
}

bool Regex::is_found_in(const std::string& text) const {
  return compiled_ != nullptr && re2::RE2::PartialMatch(text, compiled_->regex);
}

bool Regex::matches_all_of(const std::string& text) const {
  return compiled_ != nullptr && re2::RE2::FullMatch(text, compiled_->regex);
}

std::string Regex::replaced_in(const std::string& text, const std::string& by) const {
  std::string result = text;
  if (compiled_ != nullptr) re2::RE2::GlobalReplace(&result, compiled_->regex, by);
  return result;
}

}  // namespace tycho
