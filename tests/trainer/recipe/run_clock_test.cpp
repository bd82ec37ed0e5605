// Runs whose steps change their size, against sums by hand.
#include "trainer/recipe/run_clock.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "trainer/recipe/config_io.h"
#include "trainer/recipe/data_stages.h"
#include "trainer/recipe/ema_steps.h"
#include "trainer/recipe/schedule.h"

namespace tycho {
namespace {

/// Steps of so many samples of 64 tokens.
TrainConfig steps_of(int64_t samples) {
  TrainConfig config;
  config.seq_len = 64;
  config.global_batch = {static_cast<double>(samples), DurationUnit::kSample};
  config.max_duration = Duration::parse("6144tok");
  return config;
}

/// Eight steps of 4 samples are done: 2,048 tokens. Steps of 8 follow.
struct Grown {
  TrainConfig config = steps_of(8);
  RunClock clock = clock_after({}, 8, config_to_json(steps_of(4)), config);
};

TEST(RunClock, StaysWhileStepsKeepTheirSize) {
  const Json four = config_to_json(steps_of(4));
  EXPECT_EQ(clock_after({}, 8, four, steps_of(4)), RunClock());
  EXPECT_EQ(clock_after({}, 0, four, steps_of(8)), RunClock()) << "nothing was done with the other size";
  TrainConfig in_tokens = steps_of(4);
  in_tokens.global_batch = {256, DurationUnit::kToken};
  EXPECT_EQ(clock_after({}, 8, four, in_tokens), RunClock());
  for (const char* unit : {"1ba", "1tok", "1sp", "1ep", "1dur"})
    EXPECT_EQ(clock_lead(Duration::parse(unit).unit, steps_of(4), {}), 0) << unit;
}

TEST(RunClock, AddsUpWhatWasDoneAtEachSize) {
  const Grown grown;
  EXPECT_EQ(grown.clock, (RunClock{8, 32, 2048}));
  EXPECT_EQ(clock_after(grown.clock, 10, config_to_json(grown.config), grown.config), grown.clock);
  EXPECT_EQ(clock_after(grown.clock, 10, config_to_json(grown.config), steps_of(2)),
            (RunClock{10, 48, 3072}));
}

TEST(RunClock, EndsTheRunAfterItsTokens) {
  const Grown grown;
  EXPECT_EQ(last_step(grown.config, 0, grown.clock), 8 + (6144 - 2048) / 512);
  TrainConfig shrunk = steps_of(4);
  const RunClock clock = clock_after({}, 4, config_to_json(steps_of(8)), shrunk);
  EXPECT_EQ(last_step(shrunk, 0, clock), 4 + (6144 - 2048) / 256);
  shrunk.max_duration = Duration::parse("96sp");
  EXPECT_EQ(last_step(shrunk, 0, clock), 4 + (96 - 32) / 4);
  shrunk.max_duration = Duration::parse("3ep");  // of 40 samples
  EXPECT_EQ(last_step(shrunk, 40, clock), 4 + (120 - 32) / 4);
  shrunk.max_duration = Duration::parse("20ba");
  EXPECT_EQ(last_step(shrunk, 0, clock), 20) << "steps are steps";
}

TEST(RunClock, SaysAtWhichStepSomethingIsDue) {
  const Grown grown;
  const auto at = [&](const char* done) {
    return step_at(Duration::parse(done), grown.config, 12, 0, grown.clock);
  };
  EXPECT_EQ(at("4096tok"), 12);
  EXPECT_EQ(at("48sp"), 10);
  EXPECT_EQ(at("0.5dur"), 10);
  EXPECT_EQ(at("11ba"), 11);
  std::vector<int64_t> steps;
  for (int64_t step = 9; step <= 16; ++step)  // every 1,536 tokens: after 3,072, 4,608 and 6,144
    if (passes_on_clock(
            static_cast<double>(step) + clock_lead(DurationUnit::kToken, grown.config, grown.clock),
            1536.0 / 512))
      steps.push_back(step);
  EXPECT_EQ(steps, (std::vector<int64_t>{10, 13, 16}));
  TrainConfig staged = grown.config;
  staged.data_stages.push_back({.name = "late", .start = Duration::parse("4096tok")});
  EXPECT_EQ(stage_at(staged, 11, 12, grown.clock), 0);
  EXPECT_EQ(stage_at(staged, 12, 12, grown.clock), 1);
  TrainConfig averaged = grown.config;
  averaged.ema.half_life = Duration::parse("1024tok");
  averaged.ema.start = Duration::parse("4096tok");
  EXPECT_EQ(ema_steps(averaged, 12, 0, grown.clock).start, 12);
}

TEST(RunClock, ASchedulesCourseGoesOnFromTheTokens) {
  Grown grown;
  CosineConfig cosine;
  cosine.t_warmup = Duration::parse("1024tok");
  grown.config.scheduler.value = cosine;
  TrainConfig before = grown.config;
  before.global_batch = {4, DurationUnit::kSample};
  const Schedule first = make_schedule(before, total_steps(before, 0), 0);
  const Schedule second = make_schedule(grown.config, total_steps(grown.config, 0), 0, grown.clock);
  const auto expected = [](double tokens) {
    return 0.5 * (1 + std::cos(std::numbers::pi * (tokens - 1024) / (6144 - 1024)));
  };
  for (int64_t step = 4; step < 8; ++step)
    EXPECT_NEAR(schedule_factor(first, step), expected(static_cast<double>(step) * 256), 1e-12) << step;
  for (int64_t step = 8; step <= 16; ++step)
    EXPECT_NEAR(schedule_factor(second, step), expected(2048 + static_cast<double>(step - 8) * 512), 1e-12)
        << step;
}

TEST(RunClock, AWarmUpGoesOnFromItsOwnClock) {
  Grown grown;
  CosineConfig cosine;
  cosine.t_warmup = Duration::parse("4096tok");
  grown.config.max_duration = Duration::parse("100ba");
  grown.config.scheduler.value = cosine;
  const Schedule schedule = make_schedule(grown.config, 100, 0, grown.clock);
  EXPECT_DOUBLE_EQ(schedule_factor(schedule, 8), (2048 + 512) / 4096.0) << "the rate of its first step's end";
  EXPECT_DOUBLE_EQ(schedule_factor(schedule, 11), 1);
  EXPECT_LT(schedule_factor(schedule, 13), 1) << "the cosine is over steps, and has begun after step 12";
}

TEST(RunClock, TabulatedFactorsAreThoseOfStepsOfThePresentSize) {
  Grown grown;
  FnScheduleConfig table;
  table.factors =
      std::make_shared<const std::vector<double>>(std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  grown.config.scheduler.value = table;
  const Schedule schedule = make_schedule(grown.config, 12, 0, grown.clock);
  EXPECT_EQ(schedule_factor(schedule, 8), 4) << "2,048 tokens are four steps of 512";
  EXPECT_EQ(schedule_factor(schedule, 15), 11);
}

}  // namespace
}  // namespace tycho
