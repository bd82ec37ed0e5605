// Which metrics share a plot: every metric is in one, and those that differ in a number are together.
#include "trainer/report/metric_plots.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

std::vector<std::string> titles(const std::vector<MetricPlot>& plots) {
  std::vector<std::string> names;
  for (const MetricPlot& plot : plots) names.push_back(plot.section + ": " + plot.title);
  return names;
}

TEST(MetricPlots, LossIsFirstAndHasItsEvaluations) {
  const auto plots = metric_plots({"zebra", "lr", "loss", "eval.loss", "tokens_per_s"});
  EXPECT_EQ(titles(plots),
            (std::vector<std::string>{"Loss: Loss", "Learning rate and gradients: Learning rate",
                                      "Speed: Tokens per second", "Other metrics: zebra"}));
  EXPECT_EQ(plots[0].metrics, (std::vector<std::string>{"loss", "eval.loss"}));
  EXPECT_EQ(plots[0].unit, "nats per token");
}

TEST(MetricPlots, NamesThatDifferInNumbersShareAPlotInTheirOrder) {
  const auto plots = metric_plots({"grad_norm/layer10", "grad_norm/layer2", "grad_norm/layer1", "x.rank_8",
                                   "x.rank_16", "eval.b.loss", "eval.a.loss"});
  EXPECT_EQ(titles(plots),
            (std::vector<std::string>{"Loss: eval.*.loss", "Learning rate and gradients: grad_norm/layer*",
                                      "Other metrics: x.rank_*"}));
  EXPECT_EQ(plots[1].metrics,
            (std::vector<std::string>{"grad_norm/layer1", "grad_norm/layer2", "grad_norm/layer10"}));
}

TEST(MetricPlots, EveryMetricIsInExactlyOnePlot) {
  const std::set<std::string> metrics = {
      "loss",           "lr/group1",     "odd name", "a/b/c",        "",
      "memory/x_bytes", "speed/x_per_s", "step_s",   "icl/accuracy", "<b>"};
  std::multiset<std::string> shown;
  for (const MetricPlot& plot : metric_plots(metrics, {"step_s"}))
    shown.insert(plot.metrics.begin(), plot.metrics.end());
  EXPECT_EQ(shown, (std::multiset<std::string>(metrics.begin(), metrics.end())));
}

TEST(MetricPlots, ChosenMetricsComeFirst) {
  const auto plots = metric_plots({"loss", "step_s"}, {"step_s"});
  EXPECT_EQ(titles(plots), (std::vector<std::string>{"Chosen metrics: step_s", "Loss: Loss"}));
  EXPECT_EQ(plots[0].unit, "s");
}

}  // namespace
}  // namespace tycho
