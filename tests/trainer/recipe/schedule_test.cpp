// Schedules against Composer, LLM Foundry, TorchTitan and Nanotron, and at the steps that matter.
#include "trainer/recipe/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <numbers>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json_reader.h"

namespace tycho {
namespace {

template <class Kind>
TrainConfig config_of(Kind kind) {
  TrainConfig config;
  config.seq_len = 8;
  config.global_batch = {4, DurationUnit::kSample};
  config.scheduler.value = std::move(kind);
  return config;
}
template <class Kind>
Schedule schedule_of(Kind kind, int64_t total = 100) {
  TrainConfig config = config_of(std::move(kind));
  config.max_duration = {static_cast<double>(total), DurationUnit::kBatch};
  return make_schedule(config, total, 0);
}
const WarmupConfig k10Steps = {.t_warmup = {10, DurationUnit::kBatch}};

TEST(ScheduleTest, EqualsComposerTorchTitanAndNanotron) {
  const char* source = std::getenv("TYCHO_SOURCE_DIR");
  const std::string path =
      std::string(source == nullptr ? "." : source) + "/tests/golden/optim/schedules.json";
  const Json golden = parse_json(read_file(path), path);
  int64_t values = 0;
  for (const Json& one : golden["cases"]) {
    TrainConfig config = config_of(ConstantConfig{});
    config.seq_len = golden["run"]["seq_len"];
    config.global_batch = Duration::parse(golden["run"]["global_batch"].get<std::string>());
    config.max_duration = Duration::parse(one["run"]["max_duration"].get<std::string>());
    std::vector<ConfigProblem> problems;
    read_value(JsonPath{one["scheduler"], "scheduler", problems}, Rule{}, config.scheduler);
    ASSERT_TRUE(problems.empty()) << one["name"] << ": " << problems.front().message;
    const int64_t num_samples = golden["run"]["num_samples"];
    const int64_t total = total_steps(config, num_samples);
    ASSERT_EQ(total, static_cast<int64_t>(one["factors"].size())) << one["name"];
    const Schedule schedule = make_schedule(config, total, num_samples);
    for (int64_t s = 0; s < total; ++s, ++values)
      EXPECT_NEAR(schedule_factor(schedule, s), one["factors"][static_cast<size_t>(s)].get<double>(), 1e-12)
          << one["name"] << " step " << s;
  }
  EXPECT_GT(values, 1000);
}

TEST(ScheduleTest, WarmUpRisesToThePeakAndIsNeverZero) {
  const Schedule s = schedule_of(ConstantConfig{k10Steps});
  EXPECT_DOUBLE_EQ(schedule_factor(s, 0), 0.1);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 9), 1.0);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 10), 1.0);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 99), 1.0);
}

TEST(ScheduleTest, CosineFallsToItsFloor) {
  const Schedule s = schedule_of(CosineConfig{k10Steps, {1, DurationUnit::kFraction}, 0.1});
  EXPECT_DOUBLE_EQ(schedule_factor(s, 10), 1.0);
  EXPECT_NEAR(schedule_factor(s, 55), 0.55, 1e-12);
  EXPECT_NEAR(schedule_factor(s, 99), 0.1 + 0.45 * (1 + std::cos(M_PI * 89 / 90)), 1e-12);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 100), 0.1);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 1000), 0.1);
}

TEST(ScheduleTest, CosineMayEndBeforeTheRun) {
  const Schedule s = schedule_of(CosineConfig{k10Steps, {0.5, DurationUnit::kFraction}, 0.1});
  EXPECT_NEAR(schedule_factor(s, 30), 0.55, 1e-12);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 50), 0.1);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 99), 0.1);
}

TEST(ScheduleTest, WsdHoldsThenDecays) {
  const Schedule root = schedule_of(
      WsdConfig{k10Steps, {20, DurationUnit::kBatch}, DecayType::kSqrt, {1, DurationUnit::kFraction}, 0.2});
  EXPECT_DOUBLE_EQ(schedule_factor(root, 79), 1.0);
  EXPECT_NEAR(schedule_factor(root, 85), 0.2 + 0.8 * 0.5, 1e-12);
}

TEST(ScheduleTest, RatioStretchesWarmUpWhenAsked) {
  CosineConfig cosine = {k10Steps, {100, DurationUnit::kBatch}};
  cosine.scale_schedule_ratio = 2;
  EXPECT_EQ(schedule_of(cosine, 200).t_max, 200);
  EXPECT_DOUBLE_EQ(schedule_factor(schedule_of(cosine, 200), 9), 1.0);
  cosine.scale_warmup = true;
  EXPECT_DOUBLE_EQ(schedule_factor(schedule_of(cosine, 200), 9), 0.5);
  EXPECT_DOUBLE_EQ(schedule_factor(schedule_of(cosine, 200), 19), 1.0);
}

TEST(ScheduleTest, LengthsMayBeTokensSamplesEpochsOrFractions) {
  const auto warmup_of = [](const char* length) {
    CosineConfig cosine;
    cosine.t_warmup = Duration::parse(length);
    return make_schedule(config_of(cosine), 100, 85).warmup;
  };
  EXPECT_EQ(warmup_of("320tok"), 10);
  EXPECT_EQ(warmup_of("40sp"), 10);
  EXPECT_EQ(warmup_of("0.25dur"), 25);
  EXPECT_EQ(warmup_of("0.5ep"), std::round(0.5 * 21));  // 85 samples make 21 batches of 4
}

template <class Kind>
std::string problem_of(Kind kind, int64_t total = 100) {
  try {
    schedule_of(std::move(kind), total);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kRecipe);
    return error.what();
  }
  return "";
}

TEST(ScheduleTest, LengthsThatDoNotFitAreAnError) {
  EXPECT_EQ(problem_of(WsdConfig{k10Steps, {95, DurationUnit::kBatch}}),
            "[scheduler] scheduler.t_warmup: t_warmup and t_decay take 105 steps, and max_duration is 100; "
            "shorten one or train longer");
  EXPECT_EQ(problem_of(CosineConfig{k10Steps, {9, DurationUnit::kBatch}}),
            "[scheduler] scheduler.t_max: is 9 steps, and t_warmup takes 10; make it longer");
  InvSqrtConfig root;
  root.t_scale = {5, DurationUnit::kBatch};
  root.alpha_f_cooldown = 0.5;
  EXPECT_EQ(problem_of(root),
            "[scheduler] scheduler.alpha_f_cooldown: 0.5 is above alpha_f_decay = 0, but the learning rate "
            "can only fall; lower it");
  CosineConfig composer = {k10Steps, {60, DurationUnit::kBatch}};
  EXPECT_EQ(problem_of(composer), "");
  composer.compat = ScheduleCompat::kComposer;
  EXPECT_EQ(problem_of(composer),
            "[scheduler] scheduler.t_max: ends after 60 steps, and max_duration is 100; Composer rejects "
            "that after a warm-up. Set it to at least 1dur");
}

/// Composer's CosineAnnealingScheduler, LinearScheduler and PolynomialScheduler clip their time at t_max.
TEST(ScheduleTest, AScheduleOfComposerWithoutWarmUpHoldsItsEnd) {
  const auto check_end = [](auto kind, double middle) {
    kind.t_max = Duration::parse("5ba");
    kind.alpha_f = 0.25;
    kind.compat = ScheduleCompat::kComposer;
    EXPECT_EQ(problem_of(kind), "");
    const Schedule schedule = make_schedule(config_of(kind), 100, 0);
    EXPECT_NEAR(schedule_factor(schedule, 1 + 3), middle, 1e-12);
    for (const int64_t steps : {6, 7, 99}) EXPECT_EQ(schedule_factor(schedule, steps), 0.25) << steps;
  };
  check_end(CosineConfig{}, 0.25 + 0.75 * 0.5 * (1 + std::cos(0.6 * std::numbers::pi)));
  check_end(LinearConfig{}, 1 - 0.6 * 0.75);
  check_end(PolynomialConfig{}, 0.25 + 0.75 * 0.4 * 0.4);
  InvSqrtConfig root{};
  root.t_scale = Duration::parse("5ba");
  root.t_max = Duration::parse("60ba");
  root.compat = ScheduleCompat::kComposer;
  EXPECT_NE(problem_of(root).find("ends after 60 steps"), std::string::npos) << problem_of(root);
}

TEST(ScheduleTest, RefusesTheUnitsThatComposerRefuses) {
  const auto composer = [](auto kind, const char* warmup) {
    kind.t_warmup = Duration::parse(warmup);
    kind.compat = ScheduleCompat::kComposer;
    return kind;
  };
  const std::string refused =
      "[scheduler] scheduler.t_warmup: 64tok and max_duration = 100ba have different units, which Composer "
      "rejects; use the same";
  EXPECT_EQ(problem_of(composer(CosineConfig{}, "64tok")), refused);
  EXPECT_EQ(problem_of(composer(LinearConfig{}, "64tok")), refused);
  EXPECT_EQ(problem_of(composer(PolynomialConfig{}, "64tok")), refused);
  EXPECT_EQ(problem_of(composer(ConstantConfig{}, "64tok")), refused);
  EXPECT_EQ(problem_of(composer(CosineConfig{}, "0.1dur")), "");
  EXPECT_EQ(problem_of(composer(CosineConfig{}, "0tok")), "");
  CosineConfig cosine = composer(CosineConfig{}, "5ba");
  cosine.t_max = Duration::parse("3200tok");
  EXPECT_EQ(problem_of(cosine),
            "[scheduler] scheduler.t_warmup: 5ba and t_max = 3200tok have different units, which Composer "
            "rejects; use the same");
  cosine.compat = ScheduleCompat::kNone;
  EXPECT_EQ(problem_of(cosine), "");
  InvSqrtConfig root = composer(InvSqrtConfig{}, "5ba");
  root.t_scale = Duration::parse("160tok");
  EXPECT_EQ(problem_of(root),
            "[scheduler] scheduler.t_scale: 160tok and max_duration = 100ba have different units, which "
            "Composer rejects; use the same");
}

TEST(ScheduleTest, RestartsNeedALength) {
  CosineRestartsConfig restarts;
  restarts.t_0 = {4, DurationUnit::kBatch};
  restarts.t_mult = 0.4;
  EXPECT_EQ(problem_of(restarts),
            "[scheduler] scheduler.t_mult: makes intervals of length 0; make t_0 or t_mult larger");
  restarts.t_0 = {0.001, DurationUnit::kFraction};
  EXPECT_NE(problem_of(restarts).find("scheduler.t_0: is less than one step"), std::string::npos);
}

}  // namespace
}  // namespace tycho
