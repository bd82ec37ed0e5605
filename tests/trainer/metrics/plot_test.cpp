// Tests of terminal plots and sparklines: golden drawings and odd input.
#include "trainer/metrics/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/trainer/metrics/fixtures.h"
#include "trainer/base/error.h"
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

/// A straight line of 600 steps.
NamedCurve line_from(const std::string& name, double first, double last) {
  NamedCurve line{name, {}};
  for (int step = 1; step <= 600; ++step) {
    line.curve.x.push_back(step);
    line.curve.y.push_back(first + (last - first) * (step - 1) / 599);
  }
  return line;
}

TEST(PlotTest, SeveralCurvesShareAScaleAndAreToldApartByMarks) {
  PlotOptions options;
  options.width = 60;
  options.height = 8;
  options.x_label = "step";
  EXPECT_EQ("\n" + overlay({{"loss", decay()}, line_from("eval.loss", 8, 4)}, options), R"(
● loss  ▲ eval.loss
   │⢣
 8 ┤⠉⢏⠒⠒⠒⠤⠤⢄⣀⣀
   │ ⠈⢆       ⠉⠉▲⠒⠒⠤⠤⢄⣀⣀⡀
 6 ┤  ⠈⢢                ⠈⠉⠉⠒⠒⠢⠤⠤▲⣀⣀
   │    ●⢄                         ⠉⠉⠑⠒⠒⠤⠤⢄⣀⣀
   │      ⠑⢄                                 ⠉⠉⠑▲⠒⠢⠤⠤⣀⣀⡀
 4 ┤        ⠉⠒⠤⣀⡀                                      ⠈⠉⠉⠒⠒
   │            ⠈⠉⠑⠒⠒⠤⠤⠤●⠤⠤⢄⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀●⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀●⣀⣀⣀
   └─────────┬────────┬────────┬─────────┬────────┬────────┬
            100      200      300       400      500    step
)");
  options.unicode = false;
  EXPECT_EQ("\n" + overlay({{"loss", decay()}, line_from("eval.loss", 8, 4)}, options), R"(
o loss  x eval.loss
   ||.
 8 + ||''---...
   |  |.       'x''---....
 6 +   |o                 '''---x...
   |    '|                          '''---....
   |      '-.                                 ''x----...
 4 +         '-..                                       ''''
   |             '''----o-..............o...............o...
   +---------+--------+--------+---------+--------+--------+
            100      200      300       400      500    step
)");
}

TEST(PlotTest, EveryOneOfTheMostCurvesCanBeSeen) {
  for (const bool unicode : {true, false}) {
    PlotOptions options;
    options.unicode = unicode;
    std::vector<NamedCurve> same;
    for (size_t i = 0; i < kMostCurves; ++i) same.push_back(line_from("run " + std::to_string(i), 3, 1));
    const std::vector<std::string> lines = lines_of(overlay(same, options));
    const size_t first_row = lines.size() - 2 - static_cast<size_t>(options.height);
    std::string legend, rows;
    for (size_t i = 0; i < lines.size() - 2; ++i) (i < first_row ? legend : rows) += lines[i] + "  ";
    for (size_t i = 0; i < kMostCurves; ++i) {
      const size_t name = legend.find(" run " + std::to_string(i));
      ASSERT_NE(name, std::string::npos) << legend;
      const size_t before = legend.rfind(' ', name - 1) + 1;
      const std::string mark = legend.substr(i == 0 ? 0 : before, name - (i == 0 ? 0 : before));
      EXPECT_NE(rows.find(mark), std::string::npos) << mark << "\n" << rows;
    }
  }
}

TEST(PlotTest, AShortCurveAmongOthersHasAMark) {
  PlotOptions options;
  options.unicode = false;
  const std::string text = overlay({line_from("loss", 3, 1), {"eval.loss", {{300}, {2.5}}}}, options);
  EXPECT_NE(text.find("x eval.loss"), std::string::npos) << text;
  EXPECT_NE(text.find('x', text.find('\n')), std::string::npos) << text;
}

TEST(PlotTest, ColoursLeaveTheDrawingAsItIs) {
  const std::vector<NamedCurve> curves = {{"a\x1b[2J", decay()}, line_from("b", 8, 4)};
  PlotOptions options;
  const std::string plain = overlay(curves, options);
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  options.colour = true;
  std::string coloured = overlay(curves, options);
  EXPECT_NE(coloured.find("\x1b[36m"), std::string::npos);
  EXPECT_NE(coloured.find("\x1b[33m"), std::string::npos);
  for (size_t at; (at = coloured.find('\x1b')) != std::string::npos;)
    coloured.erase(at, coloured.find('m', at) + 1 - at);
  EXPECT_EQ(coloured, plain);
  EXPECT_EQ(overlay({{"loss", decay()}}, options).find('\x1b'), std::string::npos) << "there is one only";
}

TEST(PlotTest, TheNameOfASingleCurveIsTheTitle) {
  EXPECT_EQ(lines_of(overlay({{"loss", decay()}}, {})).front(), "loss");
  PlotOptions options;
  options.title = "how it went";
  EXPECT_EQ(lines_of(overlay({{"loss", decay()}}, options)).front(), "how it went");
}

TEST(PlotTest, RefusesMoreCurvesThanMarksAndANameGivenTwice) {
  std::vector<NamedCurve> curves;
  for (size_t i = 0; i <= kMostCurves; ++i) curves.push_back({std::to_string(i), decay()});
  for (const auto& [given, said] :
       {std::pair{curves, "[plot] expected at most 8 curves, got 9: name fewer metrics or runs"},
        std::pair{std::vector<NamedCurve>{{"loss", decay()}, {"loss", decay()}},
                  "[plot] expected each curve once, got \"loss\" twice"}}) {
    try {
      overlay(given, {});
      ADD_FAILURE() << said;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), said);
      EXPECT_EQ(error.code(), ExitCode::kUsage);
    }
  }
}

TEST(PlotTest, StaysWithinItsWidth) {
  for (const int width : {1, 24, 31, 79, 200}) {
    for (const bool unicode : {true, false}) {
      PlotOptions options;
      options.width = width;
      options.unicode = unicode;
      options.x_label = "step";
      const std::string one = plot(decay(), options),
                        two = overlay({{"a long name of a run's folder", decay()}, {"b", decay()}}, options);
      for (const std::string& line : lines_of(one + two)) {
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
