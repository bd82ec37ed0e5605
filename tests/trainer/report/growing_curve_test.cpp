// Curves thinned while they are read, against curves that are thinned whole.
#include "trainer/report/growing_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tycho {
namespace {

void expect_same(const ThinCurve& got, const ThinCurve& wanted) {
  EXPECT_EQ(got.bucket, wanted.bucket);
  EXPECT_EQ(got.num_points, wanted.num_points);
  EXPECT_EQ(got.x, wanted.x);
  EXPECT_EQ(got.num_finite, wanted.num_finite);
  EXPECT_EQ(got.num_not_finite, wanted.num_not_finite);
  EXPECT_EQ(got.not_finite, wanted.not_finite);
  ASSERT_EQ(got.mean.size(), wanted.mean.size());
  ASSERT_EQ(got.low.size(), wanted.low.size());
  for (size_t i = 0; i < got.mean.size(); ++i) {
    ASSERT_EQ(std::isnan(got.mean[i]), std::isnan(wanted.mean[i])) << i;
    if (std::isnan(got.mean[i])) continue;
    ASSERT_NEAR(got.mean[i], wanted.mean[i], 1e-12) << i;
    if (!got.low.empty()) {
      ASSERT_EQ(got.low[i], wanted.low[i]) << i;
      ASSERT_EQ(got.high[i], wanted.high[i]) << i;
    }
  }
}

Curve noise(int num) {
  std::mt19937 random(static_cast<unsigned>(num));
  Curve curve;
  for (int i = 0; i < num; ++i) {
    curve.x.push_back(3 * i);
    curve.y.push_back(random() % 40 == 0 ? (random() % 2 == 0 ? NAN : -INFINITY)
                                         : static_cast<double>(random() % 1000));
  }
  return curve;
}

TEST(GrowingCurve, IsTheThinnedCurveAtEveryLength) {
  for (const int num : {0, 1, 4095, 4096, 4097, 8191, 8192, 8193, 16'385, 100'000}) {
    SCOPED_TRACE(num);
    const Curve curve = noise(num);
    GrowingCurve growing;
    for (size_t i = 0; i < curve.x.size(); ++i) growing.add(curve.x[i], curve.y[i]);
    const ThinCurve wanted = thin(curve, kMostBuckets);
    if (wanted.bucket > 1) {
      ThinCurve got = growing.curve();
      expect_same(got, wanted);
    } else {
      EXPECT_EQ(growing.curve().x, curve.x);
    }
  }
}

TEST(GrowingCurve, AStepThatIsThereGetsTheLaterValue) {
  GrowingCurve growing;
  for (int i = 0; i < 10'000; ++i) {
    growing.add(i, -1e6);
    growing.add(i, i);
  }
  const ThinCurve curve = growing.curve();
  EXPECT_EQ(curve.num_points, 10'000);
  EXPECT_EQ(*std::min_element(curve.low.begin(), curve.low.end()), 0);
}

TEST(GrowingCurve, AnEarlierStepComesBeforeTheLaterOnes) {
  GrowingCurve growing;
  for (const int step : {1, 2, 5}) growing.add(step, step);
  growing.add(3, 30), growing.add(2, 20);
  EXPECT_EQ(growing.curve().x, (std::vector<double>{1, 2, 3, 5}));
  EXPECT_EQ(growing.curve().mean, (std::vector<double>{1, 20, 30, 5}));
}

TEST(GrowingCurve, AnEarlierStepOfALongCurveIsInItsBucket) {
  GrowingCurve growing;
  for (int i = 0; i < 10'000; ++i) growing.add(2 * i, 1);
  growing.add(5001, 1e6);
  const ThinCurve curve = growing.curve();
  EXPECT_EQ(curve.num_points, 10'001);
  for (size_t i = 0; i < curve.x.size(); ++i)
    EXPECT_EQ(curve.high[i] == 1e6, curve.x[i] >= 5001 && (i == 0 || curve.x[i - 1] < 5001)) << i;
}

TEST(GrowingCurve, IsCutExactlyOrSaysThatItIsNot) {
  const Curve whole = noise(20'000);
  for (const int at : {100, 16'383, 19'998, 19'999, 25'000}) {
    SCOPED_TRACE(at);
    GrowingCurve growing;
    for (size_t i = 0; i < whole.x.size(); ++i) growing.add(whole.x[i], whole.y[i]);
    const bool is_exact = growing.cut_after(3 * at);
    if (at < 16'383) {
      EXPECT_FALSE(is_exact);
    }
    if (at >= 19'999) {
      EXPECT_TRUE(is_exact);
    }
    if (!is_exact) continue;
    Curve part = whole;
    part.x.resize(std::min<size_t>(part.x.size(), static_cast<size_t>(at) + 1)), part.y.resize(part.x.size());
    expect_same(growing.curve(), thin(part, kMostBuckets));
  }
  GrowingCurve brief;
  for (int i = 0; i < 10; ++i) brief.add(i, i);
  EXPECT_TRUE(brief.cut_after(4));
  EXPECT_EQ(brief.curve().x, (std::vector<double>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(brief.cut_after(-1));
  EXPECT_TRUE(brief.curve().x.empty());
}

}  // namespace
}  // namespace tycho
