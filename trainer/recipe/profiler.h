// Configuration of profiles.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/base/duration.h"
#include "trainer/base/fields.h"

namespace tycho {

struct ProfileConfig {
  std::optional<Duration> active;
  Duration skip_first = {0, DurationUnit::kBatch};
  Duration wait = {0, DurationUnit::kBatch};
  Duration warmup = {1, DurationUnit::kBatch};
  int64_t repeat_count = 1;
  std::vector<int64_t> ranks = {0};
  bool shapes = false;
  bool memory = false;

  template <class Visitor>
  void fields(Visitor& v) {
    v("active", active,
      "Steps in one trace, written to <run>/profile. Without it, traces are recorded only on command.",
      units("ba"), positive);
    v("skip_first", skip_first, "Steps of this process before the first cycle.", units("ba"), at_least(0));
    v("wait", wait, "Steps of a cycle before its warm-up.", units("ba"), at_least(0));
    v("warmup", warmup, "Steps of a cycle in which the profiler starts up, before active.", units("ba"),
      at_least(0));
    v("repeat_count", repeat_count, "Cycles of wait, warmup and active; 0 for as many as fit into the run.",
      at_least(0));
    v("ranks", ranks, "Which ranks record.", at_least(0));
    v("shapes", shapes, "Record the shapes of arguments of ATen functions.");
    v("memory", memory, "Record memory allocations.");
  }
};

class ConfigProblems;

/// Reports keys without effect.
void check(const ProfileConfig& profile, ConfigProblems& problems);

}  // namespace tycho
