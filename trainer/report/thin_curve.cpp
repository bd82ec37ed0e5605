// Puts adjacent points of a curve together.
#include "trainer/report/thin_curve.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/text/json_number.h"

namespace tycho {
namespace {

/// Lists the first and the last half of the values that are not finite.
void list_not_finite(ThinCurve& curve) {
  int64_t seen = 0;
  for (size_t i = 0; i < curve.mean.size() && seen < curve.num_not_finite; ++i) {
    if (std::isfinite(curve.mean[i])) continue;
    if (seen < kMostNotFinite / 2 || seen >= curve.num_not_finite - kMostNotFinite / 2)
      curve.not_finite.emplace_back(curve.x[i], not_finite_text(curve.mean[i]));
    ++seen;
  }
}

int64_t num_finite_in(const ThinCurve& curve, size_t bucket) {
  if (curve.bucket > 1) return curve.num_finite[bucket];
  return std::isfinite(curve.mean[bucket]) ? 1 : 0;
}

/// Adds the finite values of a bucket to a mean of `num` others.
void add_to_mean(double& mean, double& num, double value, int64_t num_values) {
  if (num_values == 0) return;
  const auto more = static_cast<double>(num_values);
  num += more;
  mean += value * (more / num) - mean * (more / num);
}

}  // namespace

ThinCurve::ThinCurve(std::vector<double> steps, std::vector<double> values)
    : num_points(static_cast<int64_t>(steps.size())), x(std::move(steps)), mean(std::move(values)) {
  num_not_finite = std::count_if(mean.begin(), mean.end(), [](double y) { return !std::isfinite(y); });
  list_not_finite(*this);
}

void add_bucket(ThinCurve& to, const ThinCurve& from, size_t begin, size_t end) {
  double mean = 0, num = 0, low = INFINITY, high = -INFINITY;
  for (size_t i = begin; i < end; ++i) {
    const int64_t num_values = num_finite_in(from, i);
    if (num_values == 0) continue;
    add_to_mean(mean, num, from.mean[i], num_values);
    low = std::min(low, from.bucket > 1 ? from.low[i] : from.mean[i]);
    high = std::max(high, from.bucket > 1 ? from.high[i] : from.mean[i]);
  }
  to.x.push_back(from.x[end - 1]);
  to.mean.push_back(num > 0 ? mean : NAN);
  to.low.push_back(num > 0 ? low : NAN);
  to.high.push_back(num > 0 ? high : NAN);
  to.num_finite.push_back(static_cast<int64_t>(num));
}

ThinCurve thin(const ThinCurve& curve, int64_t most) {
  const size_t num = curve.x.size();
  size_t together = 1;
  while (static_cast<int64_t>((num + together - 1) / together) > most) together *= 2;
  if (together == 1) return curve;
  ThinCurve thinned;
  thinned.bucket = curve.bucket * static_cast<int64_t>(together);
  thinned.num_points = curve.num_points;
  thinned.num_not_finite = curve.num_not_finite;
  thinned.not_finite = curve.not_finite;
  for (size_t begin = 0; begin < num; begin += together)
    add_bucket(thinned, curve, begin, std::min(begin + together, num));
  return thinned;
}

double mean_from(const ThinCurve& curve, int64_t first) {
  double mean = 0, num = 0;
  for (auto i = static_cast<size_t>(first / curve.bucket); i < curve.x.size(); ++i)
    add_to_mean(mean, num, curve.mean[i], num_finite_in(curve, i));
  return num > 0 ? mean : NAN;
}

}  // namespace tycho
