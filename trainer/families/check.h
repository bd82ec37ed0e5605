// The rules between the fields of a model's config. Torch-free.
#pragma once
#include <cstdint>

#include "trainer/base/config_problems.h"
#include "trainer/families/config.h"
#include "trainer/families/recompute_config.h"

namespace tycho {

/// Reports sizes that cannot be planned, heads that do not fit, keys without effect. Paths begin with
/// "model.".
void check(const ModelConfig& model, ConfigProblems& problems);
/// Reports keys of `recompute` without effect.
void check(const RecomputeConfig& recompute, ConfigProblems& problems);

/// Returns the largest divisor of n that is at most `limit`, and small enough to be found quickly.
int64_t largest_divisor(int64_t n, int64_t limit);

}  // namespace tycho
