// The rules between the fields of a model's config. Torch-free.
#pragma once
#include <cstdint>

#include "trainer/base/config_problems.h"
#include "trainer/families/config.h"
#include "trainer/families/recompute_config.h"

namespace tycho {

/// Reports sizes that cannot be planned, heads that do not fit, keys that would do nothing. Paths begin with
/// "model.".
void check(const ModelConfig& model, ConfigProblems& problems);
/// Reports keys of `recompute` that would do nothing.
void check(const RecomputeConfig& recompute, ConfigProblems& problems);

/// The largest divisor of n that is at most `limit`, and small enough to be found at once.
int64_t largest_divisor(int64_t n, int64_t limit);

}  // namespace tycho
