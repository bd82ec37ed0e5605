// Checks the texts about ranks: who came, who hangs, who ended.
#include "trainer/rendezvous/meet/roster.h"

#include <gtest/gtest.h>

#include <thread>

namespace tycho {
namespace {

Member member(int rank) {
  Member member;
  member.rank = rank;
  member.pid = 70 + rank;
  member.host = "node" + std::to_string(rank);
  return member;
}

ProgressReport report(int64_t step, double collective_s = 0) {
  ProgressReport report;
  report.step = step;
  report.phase = "training";
  report.collective_s = collective_s;
  return report;
}

TEST(Roster, KnowsWhoHasNotCome) {
  Roster roster(3, member(0));
  EXPECT_EQ(roster.missing(), (std::vector<int>{1, 2}));
  EXPECT_FALSE(roster.is_complete());
  EXPECT_EQ(roster.find(2), nullptr);
  roster.add(member(2));
  EXPECT_EQ(roster.missing(), std::vector<int>{1});
  ASSERT_NE(roster.find(2), nullptr);
  EXPECT_EQ(roster.find(2)->host, "node2");
  roster.add(member(1));
  EXPECT_TRUE(roster.is_complete());
}

TEST(Roster, DescribesARankByItsMachineProcessAndProgress) {
  Roster roster(3, member(0));
  roster.add(member(1));
  EXPECT_EQ(roster.describe(2), "rank 2");
  EXPECT_EQ(roster.describe(1), "rank 1 (node1, pid 71)");
  roster.set_report(1, report(12));
  EXPECT_EQ(roster.describe(1), "rank 1 (node1, pid 71; " + progress_text(report(12)) + ")");
  EXPECT_EQ(roster.describe(std::vector<int>{}), "a rank");
  EXPECT_EQ(roster.describe({0, 2}), "rank 0 (node0, pid 70), rank 2");
}

TEST(Roster, EightRanksAreNamedAndTheOthersCounted) {
  const Roster roster(20, member(0));
  EXPECT_EQ(roster.describe({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}),
            "rank 1, rank 2, rank 3, rank 4, rank 5, rank 6, rank 7, rank 8 and 2 more");
}

TEST(Roster, OnlyARankThatHasNotEndedHangs) {
  Roster roster(2, member(0));
  roster.set_report(1, report(3, 59));
  EXPECT_FALSE(roster.hangs(60));
  roster.set_report(1, report(3, 60));
  EXPECT_TRUE(roster.hangs(60));
  roster.set_ended(1);
  EXPECT_FALSE(roster.hangs(60));
}

TEST(Roster, ARankThatEndedWellIsTheCauseBeforeOneThatDoesNotAnswer) {
  Roster roster(3, member(0));
  const Cause silent = roster.unreachable({1, 2}, "connection closed\nby the other end");
  EXPECT_EQ(silent.rank, 1);
  EXPECT_EQ(silent.code, ExitCode::kTerminated);
  EXPECT_EQ(silent.text,
            "[parallel] rank 1, rank 2 has ended or does not answer: connection closed. The same command "
            "resumes from the newest checkpoint");
  roster.set_ended(2);
  EXPECT_EQ(roster.ended({1}), std::vector<int>{});
  EXPECT_EQ(roster.ended({}), std::vector<int>{2});
  const Cause ended = roster.unreachable({1, 2}, "connection closed");
  EXPECT_EQ(ended.rank, 2);
  EXPECT_EQ(ended.text,
            "[parallel] rank 2 has ended, but others still need it. The same command resumes from the newest "
            "checkpoint");
}

TEST(Roster, CountsTheTimeSinceARankEnded) {
  Roster roster(2, member(0));
  EXPECT_FALSE(roster.has_one_ended_for(0));
  roster.set_ended(1);
  EXPECT_FALSE(roster.has_one_ended_for(3600));
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_TRUE(roster.has_one_ended_for(0.001));
}

}  // namespace
}  // namespace tycho
