// The guard refuses losses and gradients that would damage the weights.
#include "trainer/train/step_guard.h"

#include <gtest/gtest.h>

#include <limits>

#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(StepGuard, LetsFiniteStepsThroughAndForgetsTheSkippedOnes) {
  TrainState state;
  state.skipped = 3, state.skipped_in_a_row = 2;
  EXPECT_EQ(wrong_with_step({}, state, 2.5, 100), "");
  EXPECT_EQ(state.skipped, 3);
  EXPECT_EQ(state.skipped_in_a_row, 0);
}

TEST(StepGuard, SkipsSoManyInARowAndStopsAtTheNext) {
  GuardConfig guard;
  guard.action = GuardAction::kSkip, guard.max_skips = 2;
  TrainState state;
  EXPECT_NE(wrong_with_step(guard, state, kNan, 1), "");
  EXPECT_NE(wrong_with_step(guard, state, 1, kNan), "");
  EXPECT_EQ(state.skipped, 2);
  EXPECT_THROW(wrong_with_step(guard, state, kNan, 1), Error);
  EXPECT_EQ(wrong_with_step(guard, state, 1, 1), "") << "a step in between begins again";
  EXPECT_NE(wrong_with_step(guard, state, kNan, 1), "");
}

TEST(StepGuard, StopsAtOnceWhereTheRecipeSaysSo) {
  GuardConfig guard;
  guard.action = GuardAction::kStop, guard.max_grad_norm = 10;
  TrainState state;
  EXPECT_EQ(wrong_with_step(guard, state, 1, 10), "") << "at the limit";
  try {
    wrong_with_step(guard, state, 1, 11);
    FAIL() << "it is above the limit";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kNumerics);
    EXPECT_NE(std::string(error.what()).find("above guard.max_grad_norm = 10"), std::string::npos);
  }
  EXPECT_EQ(state.skipped, 0);
}

}  // namespace
}  // namespace tycho
