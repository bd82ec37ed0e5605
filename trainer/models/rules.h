// The rules between the fields of a model's config. Torch-free.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/base/config_problem.h"
#include "trainer/models/config.h"

namespace tycho {

/// What does not hold: sizes that cannot be planned, heads that do not fit, keys that would do nothing. Empty
/// when all is well. Paths begin with "model.".
std::vector<ConfigProblem> model_problems(const ModelConfig& model);

/// The largest divisor of n that is at most `limit`, and small enough to be found at once.
int64_t largest_divisor(int64_t n, int64_t limit);

}  // namespace tycho
