// Tests of terminal plots and sparklines: golden drawings and odd input.
#include "trainer/metrics/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/trainer/metrics/fixtures.h"
#include "trainer/metrics/format.h"

namespace tycho {
namespace {

/// 600 steps from 8.9 down to 2.9.
Curve decay() {
  Curve curve;
  for (int step = 1; step <= 600; ++step) {
    curve.x.push_back(step);
    curve.y.push_back(2.9 + 6 * std::exp(-step / 60.0));
  }
  return curve;
}

TEST(PlotTest, StepsHaveNoFractions) {
  PlotOptions options;
  options.x_label = "step";
  options.width = 100;
  const std::string text = plot(Curve{.x = {1, 2, 3, 4}, .y = {4, 3, 2, 1}}, options);
  const std::string labels = text.substr(text.rfind('\n', text.size() - 2));
  EXPECT_EQ(labels.find('.'), std::string::npos) << text;
  EXPECT_NE(labels.find('2'), std::string::npos) << text;
}

TEST(PlotTest, DrawsACurveInBraille) {
  PlotOptions options;
  options.width = 60;
  options.height = 8;
  options.title = "loss";
  options.x_label = "step";
  EXPECT_EQ("\n" + plot(decay(), options), R"(
loss
   │⢣
 8 ┤ ⢇
   │ ⠈⢆
 6 ┤  ⠈⢢
   │    ⠑⢄
   │      ⠑⢄
 4 ┤        ⠉⠒⠤⣀⡀
   │            ⠈⠉⠑⠒⠒⠤⠤⠤⠤⠤⠤⢄⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀
   └─────────┬────────┬────────┬─────────┬────────┬────────┬
            100      200      300       400      500    step
)");
}

TEST(PlotTest, DrawsACurveInAscii) {
  PlotOptions options;
  options.width = 60;
  options.height = 8;
  options.unicode = false;
  options.x_label = "step";
  EXPECT_EQ("\n" + plot(decay(), options), R"(
   ||.
 8 + |.
   |  |.
 6 +   |.
   |    '|
   |      '-.
 4 +         '-..
   |             '''------..................................
   +---------+--------+--------+---------+--------+--------+
            100      200      300       400      500    step
)");
}

TEST(PlotTest, StaysWithinItsWidth) {
  for (const int width : {1, 24, 31, 79, 200}) {
    for (const bool unicode : {true, false}) {
      PlotOptions options;
      options.width = width;
      options.unicode = unicode;
      options.x_label = "step";
      for (const std::string& line : lines_of(plot(decay(), options))) {
        EXPECT_LE(display_width(line), std::max(24, width)) << line;
      }
    }
  }
}

TEST(PlotTest, HasTwoTicksWhereThereIsARange) {
  PlotOptions options;
  options.height = 6;
  const std::string text = plot({{0, 1}, {1e-5, 3e-4}}, options);
  EXPECT_NE(text.find("0.0001 ┤"), std::string::npos) << text;
  EXPECT_NE(text.find("0.0003 ┤"), std::string::npos) << text;
}

TEST(PlotTest, TakesAnyNumbers) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const PlotOptions options;
  EXPECT_EQ(plot({{1, 2}, {nan, inf}}, options), "(no points to plot)\n");
  EXPECT_EQ(plot({}, options), "(no points to plot)\n");
  EXPECT_NE(plot({{5}, {2.5}}, options).find("2.5 ┤"), std::string::npos);
  EXPECT_NE(plot({{1, 2, 3}, {2, nan, 2}}, options).find("2 ┤"), std::string::npos);
  EXPECT_FALSE(plot({{1, 2}, {1, std::nextafter(1.0, 2.0)}}, options).empty());
  EXPECT_FALSE(plot({{0, 1e18}, {-1e30, 1e30}}, options).empty());
}

// Differences and sums of these are infinite.
TEST(PlotTest, EndsForTheLargestNumbers) {
  const double most = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();
  PlotOptions options;
  for (const int height : {1, 6, 40}) {
    options.height = height;
    for (const double high : {1e308, most})
      for (const double low : {-high, -1.0, least, 0.0, 1.0, high * 0.5, std::nextafter(high, 0)}) {
        for (const Curve& curve : {Curve{{1, 2, 3}, {low, high, high}}, Curve{{low, high}, {1, 2}},
                                   Curve{{low, high, high}, {high, low, low}}}) {
          const std::string text = plot(curve, options);
          EXPECT_EQ(text.find("nan"), std::string::npos) << text;
          EXPECT_EQ(text.find("inf"), std::string::npos) << text;
        }
        EXPECT_FALSE(sparkline({low, high, high, low}, 8, true).empty());
      }
  }
  options.height = 6;
  const std::string text = plot({{1, 2, 3}, {-1e308, 0, 1e308}}, options);
  EXPECT_NE(text.find(" 1e308 ┤"), std::string::npos) << text;
  EXPECT_NE(text.find("-1e308 ┤"), std::string::npos) << text;
}

TEST(SparklineTest, FallsWithTheCurve) {
  EXPECT_EQ(sparkline({4, 3, 2, 1}, 2, true), "⠑⢄");
  EXPECT_EQ(sparkline({3, 2, 1}, 3, false), "'-.");
  EXPECT_EQ(display_width(sparkline(decay().y, 16, true)), 16);
}

TEST(SparklineTest, IsEmptyWhereThereIsNoLine) {
  EXPECT_EQ(sparkline({}, 8, true), "");
  EXPECT_EQ(sparkline({1}, 8, true), "");
  EXPECT_EQ(sparkline({1, std::nan("")}, 8, true), "");
  EXPECT_EQ(sparkline({1, 2}, 0, true), "");
}

}  // namespace
}  // namespace tycho
