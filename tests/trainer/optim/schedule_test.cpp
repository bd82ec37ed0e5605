// Schedules at the steps that matter.
#include "trainer/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "trainer/base/error.h"

namespace tycho {
namespace {

template <class Kind>
Schedule schedule_of(Kind kind, int64_t total = 100) {
  TrainConfig config;
  config.seq_len = 8;
  config.scheduler.value = kind;
  return make_schedule(config, total, 0);
}
const Duration k10Steps = {10, DurationUnit::kBatch};

TEST(ScheduleTest, WarmUpRisesToThePeakAndIsNeverZero) {
  const Schedule s = schedule_of(ConstantConfig{k10Steps});
  EXPECT_DOUBLE_EQ(schedule_factor(s, 0), 0.1);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 9), 1.0);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 10), 1.0);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 99), 1.0);
}

TEST(ScheduleTest, CosineFallsToItsFloor) {
  const Schedule s = schedule_of(CosineConfig{k10Steps, 0.1});
  EXPECT_DOUBLE_EQ(schedule_factor(s, 10), 1.0);
  EXPECT_NEAR(schedule_factor(s, 55), 0.55, 1e-12);
  EXPECT_NEAR(schedule_factor(s, 99), 0.1 + 0.45 * (1 + std::cos(M_PI * 89 / 90)), 1e-12);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 100), 0.1);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 1000), 0.1);
}

TEST(ScheduleTest, LinearIsALine) {
  const Schedule s = schedule_of(LinearConfig{{0, DurationUnit::kBatch}, 0.5});
  EXPECT_DOUBLE_EQ(schedule_factor(s, 0), 1.0);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 50), 0.75);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 99), 0.505);
}

TEST(ScheduleTest, WsdHoldsThenDecays) {
  // TorchTitan's debug preset: 10 steps, 2 of warm-up, 8 of linear decay.
  const Schedule titan =
      schedule_of(WsdConfig{{2, DurationUnit::kBatch}, {0.8, DurationUnit::kFraction}}, 10);
  const double wanted[] = {.5, 1, 1, .875, .75, .625, .5, .375, .25, .125};
  for (int64_t s = 0; s < 10; ++s) EXPECT_NEAR(schedule_factor(titan, s), wanted[s], 1e-12) << s;
  const Schedule root = schedule_of(WsdConfig{k10Steps, {20, DurationUnit::kBatch}, DecayShape::kSqrt, 0.2});
  EXPECT_DOUBLE_EQ(schedule_factor(root, 79), 1.0);
  EXPECT_NEAR(schedule_factor(root, 85), 0.2 + 0.8 * 0.5, 1e-12);
}

TEST(ScheduleTest, LengthsMayBeTokensOrFractions) {
  TrainConfig config;
  config.seq_len = 8;
  config.global_batch = {4, DurationUnit::kSample};
  config.scheduler.value = CosineConfig{{320, DurationUnit::kToken}, 0};
  EXPECT_EQ(make_schedule(config, 100, 0).warmup_steps, 10);
  config.scheduler.value = CosineConfig{{0.25, DurationUnit::kFraction}, 0};
  EXPECT_EQ(make_schedule(config, 100, 0).warmup_steps, 25);
}

TEST(ScheduleTest, LengthsThatDoNotFitAreAnError) {
  try {
    schedule_of(WsdConfig{k10Steps, {95, DurationUnit::kBatch}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kRecipe);
    EXPECT_NE(std::string(error.what()).find("max_duration"), std::string::npos);
  }
}

}  // namespace
}  // namespace tycho
