// Choosing tokens.
#include "trainer/eval/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "trainer/base/error.h"

namespace tycho {
namespace {

const std::vector<float> kLogits = {std::log(0.1f), std::log(0.5f), std::log(0.15f), std::log(0.25f)};

TEST(SamplingTest, GreedyTakesTheLikeliestAndTheFirstOfEquals) {
  EXPECT_EQ(sample_token(kLogits, {.temperature = 0}, 0.99), 1);
  EXPECT_EQ(sample_token({1, 3, 3}, {.temperature = 0}, 0.5), 1);
}

TEST(SamplingTest, DrawsByProbability) {
  // In falling order: token 1 (0.5), 3 (0.25), 2 (0.15), 0 (0.1).
  EXPECT_EQ(sample_token(kLogits, {}, 0.0), 1);
  EXPECT_EQ(sample_token(kLogits, {}, 0.49), 1);
  EXPECT_EQ(sample_token(kLogits, {}, 0.51), 3);
  EXPECT_EQ(sample_token(kLogits, {}, 0.8), 2);
  EXPECT_EQ(sample_token(kLogits, {}, 0.95), 0);
}

TEST(SamplingTest, TopKAndTopPCutTheTail) {
  EXPECT_EQ(sample_token(kLogits, {.top_k = 2}, 0.999), 3);
  EXPECT_EQ(sample_token(kLogits, {.top_k = 100}, 0.999), 0);
  EXPECT_EQ(sample_token(kLogits, {.top_p = 0.4}, 0.999), 1);
  EXPECT_EQ(sample_token(kLogits, {.top_p = 0.6}, 0.999), 3);
}

TEST(SamplingTest, TemperatureSharpens) {
  // At 0.5 probabilities are squared: 0.25 / 0.345 of the mass is token 1.
  EXPECT_EQ(sample_token(kLogits, {.temperature = 0.5}, 0.72), 1);
  EXPECT_EQ(sample_token(kLogits, {.temperature = 0.5}, 0.73), 3);
}

TEST(SamplingTest, EqualLogitsAreDrawnInTheirOrderAndAllCanBe) {
  const std::vector<float> equal(1000, 0.5f);
  for (const int32_t id : {0, 1, 499, 999}) EXPECT_EQ(sample_token(equal, {}, (id + 0.5) / 1000), id);
  EXPECT_EQ(sample_token(equal, {.top_p = 0.01}, 0.9999), 9);
}

TEST(SamplingTest, RepetitionMakesSeenTokensLessLikelyOnWhicheverSideOfZero) {
  std::vector<float> logits = {2, -2, 2, -2, 0};
  penalise_repetition(logits, {true, true, false, false, true}, 1.25);
  EXPECT_EQ(logits, (std::vector<float>{1.6f, -2.5f, 2, -2, 0}));
}

TEST(SamplingTest, NaNIsAnError) {
  try {
    sample_token({0, std::numeric_limits<float>::quiet_NaN()}, {}, 0.5);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kNumerics);
  }
}

TEST(LogProbability, IsOfTheSoftmax) {
  EXPECT_NEAR(log_probability({0, 0, 0, 0}, 2), std::log(0.25), 1e-12);
  EXPECT_NEAR(log_probability({1000, 999}, 1), -1 - std::log1p(std::exp(-1)), 1e-9);
}

}  // namespace
}  // namespace tycho
