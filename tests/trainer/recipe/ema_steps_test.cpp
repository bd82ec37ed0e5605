// The moving average's keys in steps, against Composer's formula, and what is wrong with them.
#include "trainer/recipe/ema_steps.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/recipe/problems_after.h"

namespace tycho {
namespace {

TrainConfig with_half_life(const char* half_life, const char* every = "1ba") {
  TrainConfig config;
  config.ema.half_life = Duration::parse(half_life);
  config.ema.every = Duration::parse(every);
  return config;
}

TEST(EmaSteps, AHalfLifeIsComposersSmoothing) {
  // composer/algorithms/ema/ema.py: smoothing = exp(-log(2) * update_interval / half_life)
  const auto smoothing = [](double every, double half_life) {
    return std::exp(-std::log(2.0) * every / half_life);
  };
  EXPECT_DOUBLE_EQ(ema_steps(with_half_life("1000ba"), 5000, 0).decay, smoothing(1, 1000));
  EXPECT_DOUBLE_EQ(ema_steps(with_half_life("1000ba", "10ba"), 5000, 0).decay, smoothing(10, 1000));
  EXPECT_DOUBLE_EQ(ema_steps(with_half_life("0.1dur"), 5000, 0).decay, smoothing(1, 500));
  TrainConfig tokens = with_half_life("65536tok", "16384tok");  // 8 sequences of 1024 a step
  EXPECT_DOUBLE_EQ(ema_steps(tokens, 5000, 0).decay, smoothing(2, 8));
  EXPECT_DOUBLE_EQ(ema_steps(tokens, 5000, 0).every, 2);
  EXPECT_DOUBLE_EQ(ema_steps(with_half_life("4ep", "1ep"), 5000, 80).decay, smoothing(1, 4));
}

TEST(EmaSteps, ADecayIsTakenAsItIs) {
  TrainConfig config;
  config.ema.decay = 0.999;
  config.ema.every = Duration::parse("10ba");
  config.ema.start = Duration::parse("0.25dur");
  const EmaSteps steps = ema_steps(config, 1000, 0);
  EXPECT_EQ(steps.decay, 0.999);
  EXPECT_EQ(steps.every, 10);
  EXPECT_EQ(steps.start, 250);
  EXPECT_EQ(ema_steps(with_half_life("10ba"), 1000, 0).start, 1)
      << "there are no weights of step 0 to average";
}

TEST(EmaSteps, IsOffByDefault) { EXPECT_FALSE(TrainConfig().ema.is_used()); }

TEST(EmaSteps, KeysThatDoNothingOrContradictAreProblems) {
  const auto wrong = [](const std::function<void(EmaConfig&)>& change) {
    return problems_after([&](TrainConfig& config) { change(config.ema); });
  };
  EXPECT_EQ(wrong([](EmaConfig& ema) { ema.start = Duration::parse("10ba"); }),
            "ema.start: has no effect without ema.half_life or ema.decay; remove it");
  EXPECT_EQ(wrong([](EmaConfig& ema) { ema.every = Duration::parse("10ba"); }),
            "ema.every: has no effect without ema.half_life or ema.decay; remove it");
  EXPECT_EQ(wrong([](EmaConfig& ema) { ema.evaluate = false; }),
            "ema.evaluate: has no effect without ema.half_life or ema.decay; remove it");
  EXPECT_EQ(wrong([](EmaConfig& ema) { ema.decay = 0.9, ema.half_life = Duration::parse("10ba"); }),
            "ema.decay: and ema.half_life both set how fast the average moves; remove one of them");
  EXPECT_EQ(
      wrong([](EmaConfig& ema) { ema.decay = 0.9, ema.start = Duration::parse("2dur"); }),
      "ema.start: 2dur is more than the whole run; write at most 1dur\n"
      "ema.start: an average that begins at 2dur and is updated every 1ba has no update in a run of 100ba");
  EXPECT_EQ(
      wrong([](EmaConfig& ema) { ema.decay = 0.9, ema.start = Duration::parse("101ba"); }),
      "ema.start: an average that begins at 101ba and is updated every 1ba has no update in a run of 100ba");
  EXPECT_EQ(
      wrong([](EmaConfig& ema) { ema.decay = 0.9, ema.every = Duration::parse("150ba"); }),
      "ema.every: an average that begins at 0ba and is updated every 150ba has no update in a run of 100ba");
  EXPECT_EQ(wrong([](EmaConfig& ema) { ema.decay = 0.9, ema.start = Duration::parse("100ba"); }), "");
  EXPECT_EQ(wrong([](EmaConfig& ema) { ema.half_life = Duration::parse("1000ba"); }), "");
}

}  // namespace
}  // namespace tycho
