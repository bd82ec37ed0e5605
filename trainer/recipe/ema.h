// Configuration of an exponential moving average of the weights.
#pragma once
#include <optional>

#include "trainer/base/duration.h"
#include "trainer/base/fields.h"

namespace tycho {

/// Same as Composer's EMA algorithm. half_life or decay switches it on.
struct EmaConfig {
  std::optional<Duration> half_life;
  std::optional<double> decay;
  Duration start = {0, DurationUnit::kBatch};
  Duration every = {1, DurationUnit::kBatch};
  bool evaluate = true;

  template <class Visitor>
  void fields(Visitor& v) {
    v("half_life", half_life,
      "Keep an average of the weights in which those of this much training ago count half as much as the "
      "newest. Default: no average.",
      units("ba tok sp ep dur"), positive);
    v("decay", decay, "Instead of half_life: the share of the average that each update keeps, such as 0.999.",
      below(0, 1), positive);
    v("start", start,
      "The first update at or after this point copies the weights; there is no average before.",
      units("ba tok sp ep dur"), at_least(0));
    v("every", every, "How much training lies between two updates of the average.", units("ba tok sp ep dur"),
      positive);
    v("evaluate", evaluate,
      "Evaluate the average instead of the trained weights: the loss on eval_data, and in-context tasks.");
  }

  bool is_used() const { return half_life || decay; }
};

}  // namespace tycho
