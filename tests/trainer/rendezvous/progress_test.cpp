// What a process says of itself.
#include "trainer/rendezvous/progress.h"

#include <gtest/gtest.h>

#include <thread>

namespace tycho {
namespace {

TEST(Progress, TellsStepPhaseAndCollective) {
  Progress progress;
  EXPECT_EQ(progress_text(progress.report()), "starting");
  progress.set_step(12);
  EXPECT_EQ(progress.set_phase("evaluating"), "starting");
  EXPECT_EQ(progress.set_collective("all_reduce"), "");
  EXPECT_EQ(progress_text(progress.report()), "step 12, evaluating, in all_reduce");
  EXPECT_EQ(progress.set_collective(""), "all_reduce");
  EXPECT_EQ(progress_text(progress.report()), "step 12, evaluating");
}

TEST(Progress, ShowsTimesFromTwoSecondsOn) {
  EXPECT_EQ(progress_text(
                {.step = 3, .phase = "saving", .phase_s = 31.4, .collective = "barrier", .collective_s = 30}),
            "step 3, saving for 31 s, in barrier for 30 s");
  EXPECT_EQ(progress_text({.step = 3, .phase = "saving", .phase_s = 1.9}), "step 3, saving");
}

TEST(Progress, CountsFromTheBeginningOfThePhase) {
  Progress progress;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_GE(progress.report().phase_s, 0.02);
  progress.set_phase("saving");
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GT(progress.report().phase_s, 0);
  EXPECT_EQ(progress.report().collective_s, 0);
}

TEST(Progress, PhasesNest) {
  Progress progress;
  {
    const InPhase outer("evaluating", progress);
    {
      const InPhase inner("in callback watch", progress);
      const InCollective collective("broadcast", progress);
      EXPECT_EQ(progress_text(progress.report()), "in callback watch, in broadcast");
    }
    EXPECT_EQ(progress_text(progress.report()), "evaluating");
  }
  EXPECT_EQ(progress_text(progress.report()), "starting");
}

TEST(Progress, AddsUpTheTimeInCollectives) {
  Progress progress;
  const auto sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  {
    const InCollective outer("send", progress);
    sleep();
    EXPECT_EQ(progress.comm_time().wait_s, 0) << "it has not ended";
    const InCollective inner("connect", progress);
    sleep();
  }
  const double waited_s = progress.comm_time().wait_s;
  EXPECT_GE(waited_s, 0.04);
  sleep();
  EXPECT_EQ(progress.comm_time().wait_s, waited_s) << "outside of collectives";
  progress.add_transfer(1.5);
  progress.add_transfer(2);
  EXPECT_EQ(progress.comm_time().transfer_s, 3.5);
  EXPECT_EQ(progress.comm_time().wait_s, waited_s);
}

TEST(Progress, AProcessWithAPromptSaysSo) {
  Progress progress;
  EXPECT_FALSE(progress.is_prompt());
  progress.set_prompt();
  EXPECT_TRUE(progress.is_prompt());
}

}  // namespace
}  // namespace tycho
