// Tests of the numbers that log.show names.
#include "trainer/metrics/shown_metrics.h"

#include <gtest/gtest.h>

#include "tests/trainer/metrics/fixtures.h"

namespace tycho {
namespace {

TEST(ShownMetricsTest, TakesNumbersOfStepsCallbacksAndEvaluations) {
  ShownMetrics shown({"tflops", "loss_ema", "eval.loss", "eval.val.loss"});
  shown.step(some_step());
  shown.record("loss_ema", 3.5);
  shown.record("another", 1);
  shown.event("eval", {{"loss", 3.6}, {"name", "val"}, {"total", true}});
  shown.event("eval", {{"loss", 9.9}, {"name", "books"}, {"total", false}});
  ASSERT_EQ(shown.all().size(), 4u);
  EXPECT_EQ(shown.all()[0].value, 406.8);
  EXPECT_EQ(shown.all()[1].value, 3.5);
  EXPECT_EQ(shown.all()[2].value, 3.6);
  EXPECT_EQ(shown.all()[3].value, 3.6);
  EXPECT_EQ(shown.missing_text(), "");
}

TEST(ShownMetricsTest, HasNoValueForWhatIsNotKnown) {
  ShownMetrics shown({"mfu", "typo"});
  StepMetrics step = some_step();
  step.mfu = std::nullopt;
  shown.step(step);
  EXPECT_FALSE(shown.take_changed());
  EXPECT_FALSE(shown.all()[0].value.has_value());
  EXPECT_EQ(shown.missing_text(),
            "log.show names mfu, typo, but nothing recorded them: see metrics.jsonl for the names");
  EXPECT_EQ(ShownMetrics().missing_text(), "");
}

TEST(ShownMetricsTest, TellsNewsOnce) {
  ShownMetrics shown({"loss"});
  shown.step(some_step());
  EXPECT_TRUE(shown.take_changed());
  EXPECT_FALSE(shown.take_changed());
}

}  // namespace
}  // namespace tycho
