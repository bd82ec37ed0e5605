// Puts adjacent points of a curve together.
#include "trainer/report/thin_curve.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/text/json_number.h"

namespace tycho {
namespace {

/// Lists the first and the last half of the values that are not finite.
void list_not_finite(const Curve& curve, ThinCurve& thinned) {
  const int64_t num = thinned.num_not_finite;
  int64_t seen = 0;
  for (size_t i = 0; i < curve.y.size() && seen < num; ++i) {
    if (std::isfinite(curve.y[i])) continue;
    if (seen < kMostNotFinite / 2 || seen >= num - kMostNotFinite / 2)
      thinned.not_finite.emplace_back(curve.x[i], not_finite_text(curve.y[i]));
    ++seen;
  }
}

}  // namespace

ThinCurve thin(const Curve& curve, int64_t most) {
  ThinCurve thinned;
  const size_t num = curve.x.size();
  while ((static_cast<int64_t>(num) + thinned.bucket - 1) / thinned.bucket > most) thinned.bucket *= 2;
  for (size_t begin = 0; begin < num; begin += static_cast<size_t>(thinned.bucket)) {
    const size_t end = std::min(begin + static_cast<size_t>(thinned.bucket), num);
    double mean = 0, low = INFINITY, high = -INFINITY, finite = 0;
    for (size_t i = begin; i < end; ++i) {
      const double y = curve.y[i];
      if (!std::isfinite(y)) {
        ++thinned.num_not_finite;
        continue;
      }
      ++finite, mean += y / finite - mean / finite;
      low = std::min(low, y), high = std::max(high, y);
    }
    thinned.x.push_back(curve.x[end - 1]);
    thinned.mean.push_back(finite > 0 ? mean : NAN);
    if (thinned.bucket == 1) continue;
    thinned.low.push_back(finite > 0 ? low : NAN);
    thinned.high.push_back(finite > 0 ? high : NAN);
  }
  list_not_finite(curve, thinned);
  return thinned;
}

}  // namespace tycho
