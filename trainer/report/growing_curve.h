// A curve that is thinned while it is read, so that its memory does not grow with its length. Torch-free.
#pragma once
#include <optional>
#include <vector>

#include "trainer/report/live_plots.h"
#include "trainer/report/thin_curve.h"

namespace tycho {

/// Values over steps, in at most kMostBuckets buckets. Its last points, one bucket at most, are kept whole.
class GrowingCurve {
 public:
  /// Adds a point. Replaces the value of a step that is there already; beyond the points kept whole, an
  /// earlier step joins the bucket that it lies in.
  void add(double x, double y);
  /// Removes the points after `x`. Returns false when some of them are in buckets with others: the curve is
  /// then of no use.
  bool cut_after(double x);
  ThinCurve curve() const;
  /// Returns the value of the last step; nullopt for an empty curve.
  std::optional<double> last() const { return y_.empty() ? std::nullopt : std::optional(y_.back()); }

 private:
  void add_to_bucket(double x, double y);
  void fold();

  ThinCurve whole_;            // whole buckets; its own `bucket` is 1 until there are any
  std::vector<double> x_, y_;  // points after them
};

}  // namespace tycho
