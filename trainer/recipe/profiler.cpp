// The rules between the keys of profiles.
#include "trainer/recipe/profiler.h"

#include "trainer/base/config_problems.h"

namespace tycho {

// `warmup`, `ranks`, `shapes` and `memory` are for profiles on command too.
void check(const ProfileConfig& profile, ConfigProblems& problems) {
  const ProfileConfig standard;
  constexpr const char* kActive = "without profile.active, the steps that a trace holds";
  const bool active = profile.active.has_value();
  problems.idle("profile.skip_first", profile.skip_first.value != standard.skip_first.value, active, kActive);
  problems.idle("profile.wait", profile.wait.value != standard.wait.value, active, kActive);
  problems.idle("profile.repeat_count", profile.repeat_count != standard.repeat_count, active, kActive);
}

}  // namespace tycho
