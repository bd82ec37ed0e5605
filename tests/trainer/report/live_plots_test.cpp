// The data of a page: read back, it is the curves to six digits, and it stays small.
#include "trainer/report/live_plots.h"

#include <gtest/gtest.h>

#include <cmath>

#include "trainer/base/json.h"

namespace tycho {
namespace {

Json data_of(const LivePlots& plots) {
  const std::string page = live_plots(plots, ""), head = "id=\"page-data\">";
  const size_t at = page.find(head) + head.size();
  return Json::parse(page.substr(at, page.find("</script>", at) - at));
}

std::vector<double> steps_of(const Json& curve) {
  if (curve.contains("x")) return curve["x"].get<std::vector<double>>();
  std::vector<double> steps;
  for (const Json& one : curve["progressions"])
    for (int i = 0; i < one[2].get<int>(); ++i)
      steps.push_back(one[0].get<double>() + i * one[1].get<double>());
  return steps;
}

LivePlots plots_of(const Curve& curve, int64_t most = kMostBuckets) {
  LivePlots plots;
  plots.runs.push_back({"a", "runs/a", "", {}, {}, curve, curve});
  plots.plots = metric_plots({"loss"});
  plots.curves.push_back({0, "loss", thin(curve, most)});
  return plots;
}

TEST(LivePlots, StepsOfAnyKindComeBack) {
  for (const std::vector<double>& x : std::vector<std::vector<double>>{{1},
                                                                       {1, 2, 3, 4, 5, 6},
                                                                       {10, 20, 30, 31, 32, 33, 34, 35},
                                                                       {1, 4, 5, 11, 12, 100},
                                                                       {0, 1e15, 2e15, 3e15}}) {
    const Curve curve = {x, std::vector<double>(x.size(), 1.0)};
    EXPECT_EQ(steps_of(data_of(plots_of(curve))["curves"][0]), x);
  }
}

TEST(LivePlots, ValuesComeBackToSixDigits) {
  const std::vector<double> values = {2.3456789, -1e-12, 1.7e308, 0, 123456789, NAN};
  Curve curve;
  for (const double y : values) curve.x.push_back(static_cast<double>(curve.x.size())), curve.y.push_back(y);
  const Json y = data_of(plots_of(curve))["curves"][0]["y"];
  for (size_t i = 0; i + 1 < values.size(); ++i)
    EXPECT_NEAR(y[i].get<double>(), values[i], std::abs(values[i]) * 1e-5);
  EXPECT_TRUE(y.back().is_null());
}

TEST(LivePlots, SaysHowCurvesWereThinned) {
  Curve curve;
  for (int i = 0; i < 10'000; ++i) curve.x.push_back(i), curve.y.push_back(i);
  EXPECT_NE(data_of(plots_of(curve))["rule"].get<std::string>().find("buckets"), std::string::npos);
  EXPECT_EQ(data_of(plots_of({{1, 2}, {3, 4}}))["rule"].get<std::string>().find("Every recorded value"), 0u);
}

TEST(LivePlots, AMillionPointsAreASmallPage) {
  Curve curve;
  for (int i = 1; i <= 1'000'000; ++i) curve.x.push_back(i), curve.y.push_back(2 + std::sin(i * 1.7));
  EXPECT_LT(live_plots(plots_of(curve), "").size(), 250'000u);
}

TEST(LivePlots, ManyCurvesShareTheRoom) {
  EXPECT_EQ(buckets_for(0), kMostBuckets);
  EXPECT_EQ(buckets_for(20), kMostBuckets);
  EXPECT_EQ(buckets_for(400), 1000);
  EXPECT_EQ(buckets_for(1'000'000), 256);
}

}  // namespace
}  // namespace tycho
