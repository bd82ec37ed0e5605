// When training that does not learn is noticed, and that healthy training is not.
#include "trainer/state/loss_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace tycho {
namespace {

struct Step {
  double loss, grad_norm, lr;
};

/// The steps at which a run of `count` steps warns; count + 1 for its end.
std::vector<int64_t> warned_at(int64_t count, const std::function<Step(int64_t)>& at) {
  LossWatch watch(512);
  std::vector<int64_t> steps;
  for (int64_t step = 1; step <= count; ++step) {
    const auto [loss, grad_norm, lr] = at(step);
    if (!watch.step(loss, grad_norm, lr).empty()) steps.push_back(step);
  }
  if (!watch.end().empty()) steps.push_back(count + 1);
  return steps;
}

using Steps = std::vector<int64_t>;

TEST(LossWatch, ALossThatStaysAboveItsStartIsReportedOnceAfterAHundredSteps) {
  EXPECT_EQ(warned_at(500, [](int64_t s) { return Step{s < 40 ? 6.2 : 6.3, 1, 1e-3}; }), Steps{139});
  LossWatch watch(512);
  std::string warning;
  for (int64_t s = 1; s <= 110; ++s) warning = watch.step(s <= 10 ? 6.2 : 81.5, 1, 1e-3);
  EXPECT_TRUE(
      warning.starts_with("the loss has stayed above its start for 100 steps: the highest of the first "
                          "10 was 6.200, now it is 81.50."))
      << warning;
  EXPECT_NE(warning.find("Lower optimizer.lr"), std::string::npos);
}

// Its first steps say nothing of a start.
TEST(LossWatch, TrainingThatDivergesAtOnceIsHeldAgainstItsFirstLossAndAGuess) {
  const auto from = [](double first, double then) {
    return [=](int64_t s) { return Step{s == 1 ? first : s < 12 ? 300 : then, 1, 1e-3}; };
  };
  EXPECT_EQ(warned_at(200, from(6.3, 6.4)), Steps{110}) << "ln 512 is 6.24";
  EXPECT_EQ(warned_at(200, from(1.5, 4.0)), Steps{110}) << "finetuning";
  EXPECT_EQ(warned_at(200, from(1.5, 2.9)), Steps{});
  EXPECT_EQ(warned_at(200, from(0.01, 0.9)), Steps{}) << "a first batch of few tokens";
}

TEST(LossWatch, ARunThatEndsSoonerIsReportedAtItsEnd) {
  const auto diverged = [](int64_t s) { return Step{s == 1 ? 6.2 : 40.0 + static_cast<double>(s), 1, 1e-3}; };
  EXPECT_EQ(warned_at(60, diverged), Steps{61});
  EXPECT_EQ(warned_at(12, diverged), Steps{});  // too few to tell
  const auto late = [](int64_t s) { return Step{s < 50 ? 3.0 : 9.0, 1, 1e-3}; };
  EXPECT_EQ(warned_at(60, late), Steps{});
  EXPECT_EQ(warned_at(70, late), Steps{71});
}

TEST(LossWatch, OneLossBelowItsStartBeginsTheCountAnew) {
  EXPECT_EQ(warned_at(1000,
                      [](int64_t s) {
                        return Step{s % 90 == 5 ? 6.1 : 6.3 + (s > 10), 1, 1e-3};
                      }),
            Steps{});
}

TEST(LossWatch, WhileTheLearningRateRisesOnlyTwiceTheStartCounts) {
  const auto warm_up = [](double height) {
    return [=](int64_t s) {
      return Step{s <= 10 ? 2.5 : height, 1, 1e-6 * static_cast<double>(std::min<int64_t>(s, 2000))};
    };
  };
  EXPECT_EQ(warned_at(2050, warm_up(2.8)),
            Steps{2051});  // it has not come down when the rate has stopped rising
  EXPECT_EQ(warned_at(2000, warm_up(2.8)), Steps{});
  EXPECT_EQ(warned_at(2050, warm_up(5.1)), Steps{110});
}

TEST(LossWatch, VanishedGradientsAreReportedAfterTenSteps) {
  EXPECT_EQ(warned_at(12,
                      [](int64_t s) {
                        return Step{s == 1 ? 6.2 : 300, s == 1 ? 2.5 : 0.0, 1e6};
                      }),
            Steps{11});
  EXPECT_EQ(warned_at(50, [](int64_t s) { return Step{6.2, s < 20 ? 2.5 : 2e-6, 1e-3}; }), Steps{29});
  EXPECT_EQ(warned_at(50, [](int64_t) { return Step{6.2, 0, 1e-3}; }), Steps{10}) << "from the first step on";
  EXPECT_EQ(warned_at(50, [](int64_t s) { return Step{6.2, s % 10 == 0 ? 2.5 : 0, 1e-3}; }), Steps{});
}

TEST(LossWatch, WhereTheLossVanishesTheGradientMay) {
  // Learnt by heart: the gradient of a cross-entropy is at least 1 - exp(-loss).
  EXPECT_EQ(warned_at(3000,
                      [](int64_t s) {
                        const double loss = 6.2 * std::exp(-0.01 * static_cast<double>(s));
                        return Step{loss, 2.5 * -std::expm1(-loss), 1e-3};
                      }),
            Steps{});
  EXPECT_EQ(warned_at(100,
                      [](int64_t s) {
                        return Step{s < 20 ? 1.0 : 0, s < 20 ? 1.0 : 0, 1e-3};
                      }),
            Steps{})
      << "no token has a target";
}

TEST(LossWatch, NumbersThatAreNotFiniteAreTheGuards) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(warned_at(500,
                      [](int64_t s) {
                        return Step{s == 1 ? kNan : 6.2 - 0.001 * static_cast<double>(s), 1, 1};
                      }),
            Steps{});
  EXPECT_EQ(warned_at(500,
                      [](int64_t s) {
                        return Step{s < 11 ? 6.2 : s % 2 == 0 ? kNan : 7, 1, 1};
                      }),
            Steps{209});
}

TEST(LossWatch, OtherDataHaveAnotherStart) {
  LossWatch watch(512);
  for (int64_t s = 1; s <= 1000; ++s) {
    if (s == 500) watch.restart();
    EXPECT_EQ(watch.step(s < 500 ? 1.5 : 2.5, 1, 1e-3), "") << s;
  }
}

// Losses of finetuning, whose batches differ more than training lowers them; and of training from nothing,
// through a warm-up and two spikes.
TEST(LossWatch, HealthyRunsAreQuiet) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(0, 1);
    EXPECT_EQ(warned_at(2000,
                        [&](int64_t) {
                          return Step{1.5 + 0.4 * noise(random), 1 + 0.1 * noise(random), 1e-5};
                        }),
              Steps{})
        << seed;
    EXPECT_EQ(warned_at(2000,
                        [&](int64_t s) {
                          const auto step = static_cast<double>(s);
                          const bool spikes = s > 700 && s<760, spikes_early = s> 60 && s < 100;
                          const double loss = 3 + 7.8 * std::exp(-step / 300) + 0.05 * noise(random);
                          return Step{spikes || spikes_early ? loss + 9 : loss,
                                      30 * std::exp(-step / 100) + 0.1, 1e-3 * std::min(1.0, step / 200)};
                        }),
              Steps{})
        << seed;
  }
}

}  // namespace
}  // namespace tycho
