// Problems that many rules report in the same words.
#include "trainer/base/config_problems.h"

namespace tycho {

void ConfigProblems::add_all(const std::vector<ConfigProblem>& problems) {
  all_.insert(all_.end(), problems.begin(), problems.end());
}

void ConfigProblems::at_most(const char* path, double value, double limit) {
  if (value > limit) add(path, "{} is more than Tycho can plan; write at most {}", value, limit);
}

void ConfigProblems::idle(const std::string& path, bool set, bool used, const char* when) {
  if (set && !used) add(path, "has no effect {}; remove it", when);
}

void ConfigProblems::within_run(const std::string& path, const Duration& length) {
  if (length.unit == DurationUnit::kFraction && length.value > 1)
    add(path, "{} is more than the whole run; write at most 1dur", length.str());
}

}  // namespace tycho
