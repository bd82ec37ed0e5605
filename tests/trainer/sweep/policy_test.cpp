// Verdicts by exit code.
#include "trainer/sweep/policy.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

TEST(Policy, EachExitCodeHasItsEnd) {
  const Trial fresh;
  const auto state = [&](int code, const std::string& words = "") {
    return judge(fresh, {.exit_code = code, .message = words, .micro_batch = 8}).state;
  };
  EXPECT_EQ(state(0), TrialState::kFinished);
  EXPECT_EQ(judge(fresh, {.exit_code = 0, .at_last_rung = false}).state, TrialState::kRungDone);
  EXPECT_EQ(state(2), TrialState::kFailed);
  EXPECT_EQ(state(10), TrialState::kFailed);
  EXPECT_EQ(state(11), TrialState::kFailed);
  EXPECT_EQ(state(12), TrialState::kPaused);
  EXPECT_EQ(state(14, "[trainer] loss nan"), TrialState::kStopped);
  EXPECT_EQ(state(14, "[kernels] out of memory"), TrialState::kPaused);
  EXPECT_EQ(state(15), TrialState::kPaused);
  EXPECT_EQ(state(93), TrialState::kFailed);
  EXPECT_EQ(state(137), TrialState::kPaused);
  for (const int code : {129, 130, 138, 140, 143, 152}) EXPECT_EQ(state(code), TrialState::kPaused) << code;
}

TEST(Policy, ATrialWhoseMetricIsNotFiniteHasDiverged) {
  const TrialEnd end = judge({}, {.exit_code = 0, .not_finite = "eval.loss is nan"});
  EXPECT_EQ(end.state, TrialState::kStopped);
  EXPECT_EQ(end.note, "diverged: eval.loss is nan");
  EXPECT_EQ(judge({}, {.exit_code = 0, .at_last_rung = false, .not_finite = "eval.loss is inf"}).state,
            TrialState::kStopped);
  EXPECT_EQ(judge({}, {.exit_code = 143, .not_finite = "eval.loss is nan"}).state, TrialState::kPaused);
}

TEST(Policy, MemoryGetsHalfTheMicroBatchOnce) {
  Trial trial;
  const ProcessEnd process_end{.exit_code = 14, .message = "out of memory", .micro_batch = 8};
  const TrialEnd first = judge(trial, process_end);
  EXPECT_EQ(first.micro_batch, 4);
  EXPECT_EQ(first.note, "out of memory; continues with micro_batch=4sp");
  trial.halved = true, trial.micro_batch = 4;
  EXPECT_EQ(judge(trial, process_end).state, TrialState::kFailed);
  EXPECT_EQ(judge({}, {.exit_code = 14, .message = "out of memory", .micro_batch = 1}).state,
            TrialState::kFailed);
}

TEST(Policy, StorageIsTriedTwiceMoreAndStepsInBetweenCountAnew) {
  Trial trial;
  trial.retries = 2;
  EXPECT_EQ(judge(trial, {.exit_code = 15, .message = "full"}).state, TrialState::kFailed);
  const TrialEnd end = judge(trial, {.exit_code = 15, .message = "full", .steps_gained = 3});
  EXPECT_EQ(end.state, TrialState::kPaused);
  EXPECT_EQ(end.note, "full; retry 1 of 2");
}

TEST(Policy, OnlyATrialThatSaidSoHasSaved) {
  const auto note = [](int code) {
    return judge({}, {.exit_code = code, .message = "full", .leaving = true}).note;
  };
  EXPECT_EQ(note(143), "stopped and saved");
  EXPECT_EQ(note(137), "killed by signal 9");
  EXPECT_EQ(note(15), "full; retry 1 of 2");
  for (const int code : {0, 130, 138, 143}) EXPECT_TRUE(ends_saved(code)) << code;
  for (const int code : {1, 12, 15, 93, 137, 139}) EXPECT_FALSE(ends_saved(code)) << code;
}

TEST(Policy, ARuleThatStoppedItIsNamed) {
  const TrialEnd end = judge({}, {.exit_code = 143, .stopped_by = "flat"});
  EXPECT_EQ(end.state, TrialState::kStopped);
  EXPECT_EQ(end.note, "flat");
}

TEST(Policy, ATrialThatTakesItsWorkersWithItIsGivenUp) {
  Trial trial;
  trial.losses = kMaxLosses - 1;
  EXPECT_EQ(judge_lost(trial, 1).state, TrialState::kLost);
  EXPECT_EQ(judge_lost(trial, 0).state, TrialState::kFailed);
}

}  // namespace
}  // namespace tycho
