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
  EXPECT_EQ(wrong_with_step(TrainConfig(), state, 2.5, 100), "");
  EXPECT_EQ(state.skipped, 3);
  EXPECT_EQ(state.skipped_in_a_row, 0);
}

TEST(StepGuard, SkipsSoManyInARowAndStopsAtTheNext) {
  TrainConfig recipe;
  GuardConfig& guard = recipe.guard;
  guard.action = GuardAction::kSkip, guard.max_skips = 2;
  TrainState state;
  EXPECT_NE(wrong_with_step(recipe, state, kNan, 1), "");
  EXPECT_NE(wrong_with_step(recipe, state, 1, kNan), "");
  EXPECT_EQ(state.skipped, 2);
  EXPECT_THROW(wrong_with_step(recipe, state, kNan, 1), Error);
  EXPECT_EQ(wrong_with_step(recipe, state, 1, 1), "") << "a step in between begins again";
  EXPECT_NE(wrong_with_step(recipe, state, kNan, 1), "");
}

TEST(StepGuard, StopsAtOnceWhereTheRecipeSaysSo) {
  TrainConfig recipe;
  GuardConfig& guard = recipe.guard;
  guard.action = GuardAction::kStop, guard.max_grad_norm = 10;
  TrainState state;
  EXPECT_EQ(wrong_with_step(recipe, state, 1, 10), "") << "at the limit";
  try {
    wrong_with_step(recipe, state, 1, 11);
    FAIL() << "it is above the limit";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kNumerics);
    EXPECT_NE(std::string(error.what()).find("above guard.max_grad_norm = 10"), std::string::npos);
  }
  EXPECT_EQ(state.skipped, 0);
}

TEST(StepGuard, NamesFunctionsOfTheRecipeThatMayHaveMadeANan) {
  const auto message = [](const TrainConfig& recipe, double loss) -> std::string {
    TrainState state;
    try {
      return wrong_with_step(recipe, state, loss, 1);
    } catch (const Error& error) {
      return error.what();
    }
  };
  TrainConfig recipe;
  recipe.guard.action = GuardAction::kStop;
  EXPECT_EQ(message(recipe, kNan).find("functions of its own"), std::string::npos);
  DefinedLossConfig loss;
  loss.defined = "own", loss.code = {"recipes/x.lua:7", "0"};
  recipe.loss.value = loss;
  LlamaConfig model;
  model.activation.expression = Json::object(), model.activation.code = {"recipes/x.lua:3", "0"};
  recipe.model.value = model;
  const std::string said = message(recipe, kNan);
  EXPECT_NE(said.find("model.activation (recipes/x.lua:3), loss (recipes/x.lua:7)"), std::string::npos)
      << said;
  recipe.guard.max_grad_norm = 0.5;
  EXPECT_EQ(message(recipe, 1).find("functions of its own"), std::string::npos) << "a number is no NaN";
}

}  // namespace
}  // namespace tycho
