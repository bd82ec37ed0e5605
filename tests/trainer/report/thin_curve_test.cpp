// Thinned curves: whole when short, and otherwise with the extremes that a search through all points finds.
#include "trainer/report/thin_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tycho {
namespace {

Curve noise(size_t num, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Curve curve;
  for (size_t i = 0; i < num; ++i) {
    curve.x.push_back(static_cast<double>(10 * i + random() % 10));
    curve.y.push_back(random() % 50 == 0 ? (random() % 2 == 0 ? NAN : INFINITY) : normal(random));
  }
  return curve;
}

TEST(ThinCurve, AShortCurveStaysWhole) {
  const Curve curve = {{1, 2, 5}, {3, NAN, -1}};
  const ThinCurve thinned = thin(curve, 3);
  EXPECT_EQ(thinned.bucket, 1);
  EXPECT_EQ(thinned.x, curve.x);
  EXPECT_EQ(thinned.mean[0], 3);
  EXPECT_TRUE(std::isnan(thinned.mean[1]));
  EXPECT_TRUE(thinned.low.empty() && thinned.high.empty());
  EXPECT_TRUE(thin({}, 3).x.empty());
}

TEST(ThinCurve, BucketsHaveTheExtremesAndMeansOfTheirPoints) {
  for (const size_t num : {5u, 16u, 17u, 1000u, 4097u})
    for (const int64_t most : {1, 4, 7, 256}) {
      const Curve curve = noise(num, static_cast<unsigned>(num));
      const ThinCurve thinned = thin(curve, most);
      ASSERT_LE(static_cast<int64_t>(thinned.x.size()), most);
      EXPECT_EQ(thinned.bucket & (thinned.bucket - 1), 0);
      if (thinned.bucket > 1) {
        EXPECT_GT((static_cast<int64_t>(num) * 2 + thinned.bucket - 1) / thinned.bucket, most)
            << "smaller buckets would do";
      }
      int64_t not_finite = 0;
      for (size_t i = 0; i < num; ++i) {
        const size_t b = i / static_cast<size_t>(thinned.bucket);
        if (!std::isfinite(curve.y[i])) {
          ++not_finite;
        } else if (thinned.bucket > 1) {
          EXPECT_LE(thinned.low[b], curve.y[i]);
          EXPECT_GE(thinned.high[b], curve.y[i]);
        }
        EXPECT_LE(curve.x[i], thinned.x[b]);
      }
      EXPECT_EQ(thinned.num_not_finite, not_finite);
      for (size_t b = 0; b < thinned.x.size(); ++b) {
        double sum = 0, finite = 0, low = INFINITY, high = -INFINITY;
        for (size_t i = b * static_cast<size_t>(thinned.bucket);
             i < std::min(num, (b + 1) * static_cast<size_t>(thinned.bucket)); ++i)
          if (std::isfinite(curve.y[i]))
            sum += curve.y[i], ++finite, low = std::min(low, curve.y[i]), high = std::max(high, curve.y[i]);
        if (finite == 0) {
          EXPECT_FALSE(std::isfinite(thinned.mean[b]));
          continue;
        }
        EXPECT_NEAR(thinned.mean[b], sum / finite, 1e-12);
        if (thinned.bucket == 1) continue;
        EXPECT_EQ(thinned.low[b], low);
        EXPECT_EQ(thinned.high[b], high);
      }
    }
}

TEST(ThinCurve, OneSpikeInAMillionIsKept) {
  Curve curve;
  for (int i = 0; i < 1'000'000; ++i) curve.x.push_back(i), curve.y.push_back(i == 654'321 ? 9 : 2);
  const ThinCurve thinned = thin(curve, 4096);
  EXPECT_EQ(*std::max_element(thinned.high.begin(), thinned.high.end()), 9);
  EXPECT_EQ(*std::min_element(thinned.low.begin(), thinned.low.end()), 2);
}

TEST(ThinCurve, ListsTheFirstAndLastValuesThatAreNotFinite) {
  Curve curve;
  for (int i = 0; i < 1000; ++i) curve.x.push_back(i), curve.y.push_back(i % 2 == 0 ? NAN : 1);
  const ThinCurve thinned = thin(curve, 10);
  EXPECT_EQ(thinned.num_not_finite, 500);
  ASSERT_EQ(thinned.not_finite.size(), 100u);
  EXPECT_EQ(thinned.not_finite.front().first, 0);
  EXPECT_EQ(thinned.not_finite.back().first, 998);
  EXPECT_EQ(thinned.not_finite.back().second, "nan");
}

TEST(ThinCurve, TheLargestNumbersHaveAMean) {
  const ThinCurve thinned = thin({{1, 2}, {1.7e308, 1.7e308}}, 1);
  EXPECT_DOUBLE_EQ(thinned.mean[0], 1.7e308);
}

}  // namespace
}  // namespace tycho
