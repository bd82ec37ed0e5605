// Sums of tokens, counted by hand, and a schedule that goes by them.
#include "trainer/recipe/step_tokens.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "trainer/base/error.h"
#include "trainer/recipe/run_clock.h"
#include "trainer/recipe/schedule.h"
#include "trainer/recipe/train_config.h"

namespace tycho {
namespace {

TEST(StepTokens, SaysWhereANumberOfTokensIsReached) {
  const StepTokens steps({10, 30, 20});
  EXPECT_EQ(steps.tokens(0), 0);
  EXPECT_EQ(steps.tokens(2), 40);
  EXPECT_EQ(steps.tokens(3), 60);
  EXPECT_EQ(steps.tokens(5), 100);  // 20 a step, the mean
  EXPECT_EQ(steps.tokens(1.5), 25);
  EXPECT_DOUBLE_EQ(steps.steps(0), 0);
  EXPECT_DOUBLE_EQ(steps.steps(10), 1);
  EXPECT_DOUBLE_EQ(steps.steps(25), 1.5);
  EXPECT_DOUBLE_EQ(steps.steps(60), 3);
  EXPECT_DOUBLE_EQ(steps.steps(80), 4);
  EXPECT_THROW(StepTokens({}), Error);
}

TEST(StepTokens, AreWhatLengthsAndTheScheduleGoBy) {
  const std::vector<int64_t> of_steps = {100, 10, 60, 30, 100, 70, 30, 100};  // 500 in all
  TrainConfig config;
  config.seq_len = 64;
  config.global_batch = {4, DurationUnit::kSample};
  config.max_duration = {450, DurationUnit::kToken};
  config.step_tokens = std::make_shared<const StepTokens>(of_steps);
  CosineConfig cosine;
  cosine.compat = ScheduleCompat::kComposer;
  cosine.t_warmup = {150, DurationUnit::kToken};
  cosine.t_max = {1, DurationUnit::kFraction};
  cosine.alpha_f = 0;
  config.scheduler.value = cosine;
  ASSERT_EQ(total_steps(config, 0), 8);
  EXPECT_EQ(trained_tokens(config, 8), 500);
  const Schedule schedule = make_schedule(config, 8, 0);
  // Composer's formula over the tokens of the batches before the last one.
  for (int64_t s = 0; s < 8; ++s) {
    double tokens = 0;
    for (int64_t k = 0; k + 1 < s; ++k) tokens += static_cast<double>(of_steps[static_cast<size_t>(k)]);
    const double wanted = tokens < 150
                              ? tokens / 150
                              : 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, (tokens - 150) / 300)));
    EXPECT_NEAR(schedule_factor(schedule, s), wanted, 1e-12) << s;
  }
}

TEST(StepTokens, GoOnWhereStepsHaveAnotherSizeFromAStepOn) {
  TrainConfig config;
  config.seq_len = 64;
  config.global_batch = {8, DurationUnit::kSample};
  config.max_duration = {450, DurationUnit::kToken};
  config.step_tokens = std::make_shared<const StepTokens>(std::vector<int64_t>{110, 90, 170, 130});
  CosineConfig cosine;
  cosine.t_max = {1, DurationUnit::kFraction};
  cosine.alpha_f = 0;
  config.scheduler.value = cosine;
  const RunClock clock{4, 16, 16 * 64};  // four steps of half the rows are done: those of two steps
  EXPECT_EQ(trained_tokens(config, 4, clock), 200);
  EXPECT_EQ(trained_tokens(config, 5, clock), 370);
  EXPECT_EQ(last_step(config, 0, clock), 6);
  const Schedule schedule = make_schedule(config, total_steps(config, 0), 0, clock);
  EXPECT_NEAR(schedule_factor(schedule, 4), 0.5 * (1 + std::cos(std::numbers::pi * 200 / 450)), 1e-12);
  EXPECT_NEAR(schedule_factor(schedule, 5), 0.5 * (1 + std::cos(std::numbers::pi * 370 / 450)), 1e-12);
}

TEST(StepTokens, AreNotTheClockOfAScheduleInSteps) {
  TrainConfig config;
  config.seq_len = 64;
  config.global_batch = {4, DurationUnit::kSample};
  config.max_duration = {300, DurationUnit::kToken};
  config.step_tokens = std::make_shared<const StepTokens>(std::vector<int64_t>{100, 10, 90, 100});
  LinearConfig linear;
  linear.t_max = {4, DurationUnit::kBatch};
  linear.alpha_f = 0;
  config.scheduler.value = linear;
  const Schedule schedule = make_schedule(config, total_steps(config, 0), 0);
  for (int64_t s = 0; s < 4; ++s)
    EXPECT_NEAR(schedule_factor(schedule, s), 1 - static_cast<double>(s) / 4, 1e-12) << s;
}

}  // namespace
}  // namespace tycho
