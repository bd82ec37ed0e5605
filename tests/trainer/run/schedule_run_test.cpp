// Whole runs with a schedule that is asked before every step: what it remembers, and how it fails.
#include <gtest/gtest.h>

#include "tests/trainer/run/callbacks_run_fixture.h"
#include "trainer/checkpoint/checkpoint.h"

namespace tycho {
namespace {

TEST_F(CallbacksRunTest, ADynamicScheduleRemembersAcrossAResume) {
  DynamicScheduleConfig dynamic;
  config_.scheduler.value = dynamic;
  source_.factor = [](int64_t step) { return 1.0 / static_cast<double>(step + 1); };
  EXPECT_EQ(run(), 0);
  const auto undisturbed = losses();
  config_.run_dir = dir_ / "other";
  control([this](const EventInfo& info, CallbackPort&, Json&) {
    if (info.metrics.step == 5) stop_ = 15;
  });
  EXPECT_EQ(run(), 143);
  stop_ = 0;
  source_.make = [] { return std::vector<Callback>(); };
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(losses(), undisturbed);
}

// At any step: the policy of callbacks, which go on without one after the first hundred steps, is not for it.
TEST_F(CallbacksRunTest, AScheduleThatFailsStopsBeforeItsStepWithACheckpointThatResumesExactly) {
  config_.scheduler.value = DynamicScheduleConfig();
  config_.max_duration = {120, DurationUnit::kBatch};
  config_.ckpt.every = {1000, DurationUnit::kBatch};
  source_.factor = [](int64_t step) { return 1.0 / static_cast<double>(step + 1); };
  EXPECT_EQ(run(), 0);
  const auto undisturbed = losses();
  const auto tensors = newest_tensors();
  config_.run_dir = dir_ / "other";
  int64_t fails_at = 0;
  source_.factor = [&](int64_t step) {
    if (step == fails_at) throw Error("x.lua:7: oh", ExitCode::kFailure);
    return 1.0 / static_cast<double>(step + 1);
  };
  for (const int64_t step : {0, 60, 110}) {
    fails_at = step;
    const Error error = run_error();
    EXPECT_EQ(error.code(), ExitCode::kRecipe);
    EXPECT_EQ(std::string(error.what()),
              fmt::format("[schedule] rank 0, before step {}: x.lua:7: oh. The run stopped with a checkpoint",
                          step + 1));
    EXPECT_EQ(find_checkpoint(run_dir()).step, step);
  }
  fails_at = -1;
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(losses(), undisturbed);
  EXPECT_TRUE(newest_tensors() == tensors);
}

TEST_F(CallbacksRunTest, CtrlCInAScheduleEndsTheRunBeforeItsStepWithACheckpoint) {
  config_.scheduler.value = DynamicScheduleConfig();
  source_.factor = [&](int64_t step) {
    if (step != 6) return 1.0;
    stop_ = 2;
    throw Error("interrupted", ExitCode::kInterrupted);
  };
  EXPECT_EQ(run(), 130);
  EXPECT_EQ(find_checkpoint(run_dir()).step, 6);
}

}  // namespace
}  // namespace tycho
