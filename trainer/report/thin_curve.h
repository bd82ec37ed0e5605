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
  int64_t bucket = 1;             // points in each bucket but the last, a power of two
  std::vector<double> x;          // last x of each bucket
  std::vector<double> mean;       // mean of the finite values of each bucket; NaN when there are none
  std::vector<double> low, high;  // least and greatest finite value; empty when `bucket` is 1
  int64_t num_not_finite = 0;     // values of the curve that are infinite or NaN
  std::vector<std::pair<double, std::string>> not_finite;  // x and text of the first and last of them

  bool operator==(const ThinCurve&) const = default;
};

/// Most points that `ThinCurve::not_finite` lists.
inline constexpr int64_t kMostNotFinite = 100;

/// Returns the curve in at most `most` buckets, which are as small as that allows. A curve of at most `most`
/// points stays whole. Requires `most` > 0.
ThinCurve thin(const Curve& curve, int64_t most);

}  // namespace tycho
