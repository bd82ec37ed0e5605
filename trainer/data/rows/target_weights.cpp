// One rounding for all kinds of data.
#include "trainer/data/rows/target_weights.h"

#include <cmath>

#include "trainer/base/error.h"

namespace tycho {

float target_weight(double weight, bool marks, std::string_view place) {
  if (!(std::abs(weight) <= kMostWeight))
    fail(ExitCode::kUnusable,
         "[data] {}: expected a weight from -{} to {}, got {}: divide all weights by one number, which "
         "changes "
         "no loss",
         place, kMostWeight, kMostWeight, weight);
  if (weight < 0 && !marks)
    fail(ExitCode::kUnusable,
         "[data] {}: expected a weight of at least 0, got {}: a negative weight marks a target for a loss "
         "that "
         "reads z.weight (t.loss.define), and the recipe's does not",
         place, weight);
  return static_cast<float>(std::round(weight / kWeightUnit) * kWeightUnit);
}

}  // namespace tycho
