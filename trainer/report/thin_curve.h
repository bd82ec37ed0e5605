// Curves of any length in few points that keep every extreme. Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainer/metrics/curve.h"

namespace tycho {

/// A curve in buckets of adjacent points.
struct ThinCurve {
  int64_t bucket = 1;               // points in each bucket but the last, a power of two
  int64_t num_points = 0;           // points in all buckets together
  std::vector<double> x;            // last x of each bucket
  std::vector<double> mean;         // mean of the finite values of each bucket; NaN when there are none;
                                    // with a `bucket` of 1 the value itself
  std::vector<double> low, high;    // least and greatest finite value; empty when `bucket` is 1
  std::vector<int64_t> num_finite;  // finite values of each bucket; empty when `bucket` is 1
  int64_t num_not_finite = 0;       // values of the curve that are infinite or NaN
  std::vector<std::pair<double, std::string>> not_finite;  // x and text of the first and last of them

  ThinCurve() = default;
  /// Makes a curve of buckets of one point.
  ThinCurve(std::vector<double> steps, std::vector<double> values);
  ThinCurve(const Curve& curve) : ThinCurve(curve.x, curve.y) {}
  bool operator==(const ThinCurve&) const = default;
};

/// Most points that `ThinCurve::not_finite` lists.
inline constexpr int64_t kMostNotFinite = 100;

/// Adds a bucket of the points or buckets [begin, end) of `from` to `to`, which has larger buckets.
void add_bucket(ThinCurve& to, const ThinCurve& from, size_t begin, size_t end);

/// Returns the curve in at most `most` buckets, which are as small as that allows. A curve of at most `most`
/// points stays whole. Requires `most` > 0.
ThinCurve thin(const ThinCurve& curve, int64_t most);

/// Returns the mean of the finite values from the point of index `first` on, beginning with its bucket; NaN
/// when there are none.
double mean_from(const ThinCurve& curve, int64_t first);

}  // namespace tycho
