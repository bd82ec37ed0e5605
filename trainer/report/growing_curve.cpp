// Folds points into buckets, and pairs of buckets into larger ones.
#include "trainer/report/growing_curve.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace tycho {
namespace {

static_assert(kMostBuckets % 2 == 0, "buckets are joined in pairs");

/// Keeps the first and the last half of what may be listed.
void limit(std::vector<std::pair<double, std::string>>& list) {
  constexpr std::ptrdiff_t kHalf = kMostNotFinite / 2;
  if (std::ssize(list) > 2 * kHalf) list.erase(list.begin() + kHalf, list.end() - kHalf);
}

/// Adds points to a curve's list of values that are not finite.
void add_not_finite(ThinCurve& curve, const ThinCurve& points) {
  curve.num_not_finite += points.num_not_finite;
  curve.not_finite.insert(curve.not_finite.end(), points.not_finite.begin(), points.not_finite.end());
  limit(curve.not_finite);
}

ThinCurve in_pairs(const ThinCurve& curve) { return thin(curve, (std::ssize(curve.x) + 1) / 2); }

}  // namespace

void GrowingCurve::add(double x, double y) {
  if (x_.empty() || x > x_.back()) {
    x_.push_back(x), y_.push_back(y);
  } else if (whole_.x.empty() || x > whole_.x.back()) {
    const std::ptrdiff_t at = std::lower_bound(x_.begin(), x_.end(), x) - x_.begin();
    if (x_[static_cast<size_t>(at)] == x) {
      y_[static_cast<size_t>(at)] = y;
      return;
    }
    x_.insert(x_.begin() + at, x), y_.insert(y_.begin() + at, y);
  } else {
    add_to_bucket(x, y);
    return;
  }
  const int64_t most = whole_.bucket == 1 ? kMostBuckets : whole_.bucket;
  if (std::ssize(x_) > most) fold();
}

/// Puts points into buckets, except for the last one, which may be replaced.
void GrowingCurve::fold() {
  if (whole_.bucket == 1) whole_.bucket = 2;
  const auto bucket = static_cast<size_t>(whole_.bucket), folded = (x_.size() - 1) / bucket * bucket;
  const auto end = static_cast<std::ptrdiff_t>(folded);
  const ThinCurve points({x_.begin(), x_.begin() + end}, {y_.begin(), y_.begin() + end});
  x_.erase(x_.begin(), x_.begin() + end), y_.erase(y_.begin(), y_.begin() + end);
  for (size_t begin = 0; begin < folded; begin += bucket) add_bucket(whole_, points, begin, begin + bucket);
  whole_.num_points += points.num_points;
  add_not_finite(whole_, points);
  if (std::ssize(whole_.x) == kMostBuckets) whole_ = in_pairs(whole_);
}

void GrowingCurve::add_to_bucket(double x, double y) {
  const auto i =
      static_cast<size_t>(std::lower_bound(whole_.x.begin(), whole_.x.end(), x) - whole_.x.begin());
  ThinCurve two = {{0, x}, {0, y}}, joined;
  two.bucket = whole_.bucket;
  two.low = two.high = two.mean;
  two.num_finite = {0, std::isfinite(y) ? 1 : 0};
  two.mean[0] = whole_.mean[i], two.low[0] = whole_.low[i], two.high[0] = whole_.high[i];
  two.num_finite[0] = whole_.num_finite[i];
  add_bucket(joined, two, 0, 2);
  whole_.mean[i] = joined.mean[0], whole_.low[i] = joined.low[0], whole_.high[i] = joined.high[0];
  whole_.num_finite[i] = joined.num_finite[0];
  ++whole_.num_points;
  add_not_finite(whole_, {{x}, {y}});
}

bool GrowingCurve::cut_after(double x) {
  const std::ptrdiff_t kept = std::upper_bound(x_.begin(), x_.end(), x) - x_.begin();
  // The last point stays whole, since its value may be replaced.
  if (kept == 0 && !whole_.x.empty()) return false;
  x_.resize(static_cast<size_t>(kept)), y_.resize(static_cast<size_t>(kept));
  return true;
}

ThinCurve GrowingCurve::curve() const {
  if (whole_.bucket == 1) return {x_, y_};
  ThinCurve curve = whole_;
  const ThinCurve last(x_, y_);
  add_bucket(curve, last, 0, last.x.size());
  curve.num_points += last.num_points;
  add_not_finite(curve, last);
  return curve;
}

}  // namespace tycho
