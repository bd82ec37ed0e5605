// Facts into trials: their order, repetition, fencing, and what a compaction keeps.
#include "trainer/sweep/board.h"

#include "tests/trainer/sweep/sweep_fixture.h"
#include "trainer/sweep/table.h"

namespace tycho {
namespace {

using BoardTest = SweepBoardTest;

TEST_F(BoardTest, ALateWordOfAnOwnerThatWasThoughtDeadIsIgnored) {
  SweepFolder f = folder(define(1));
  claim(f, "a1");
  const Json late = end_fact(*f.board().find("a1"), 1, 0, {.state = TrialState::kFinished});
  f.record(end_fact(*f.board().find("a1"), 1, 0, {.state = TrialState::kLost, .losses = 1}));
  claim(f, "a1");
  f.record(late);
  EXPECT_EQ(f.board().find("a1")->state, TrialState::kClaimed);
  EXPECT_EQ(f.board().find("a1")->claim, 2);
}

TEST_F(BoardTest, FactsThatComeTwiceSayTheSame) {
  SweepFolder f = folder(define(2));
  do_trial(f, "a1", TrialState::kFinished, 1.5);
  const Json once = sweep_json(f.board());
  SweepFolder again(real_files(), dir_ / "sweep");
  Ledger ledger(real_files(), dir_ / "sweep");
  for (const Json& fact : ledger.read_new().facts) ledger.append(fact);
  again.refresh();
  EXPECT_EQ(sweep_json(again.board()), once);
}

TEST_F(BoardTest, WhatACompactionKeepsMakesTheSameBoard) {
  SweepFolder f = folder(define(7, asha({{1, DurationUnit::kBatch}, {2, DurationUnit::kBatch}})));
  do_trial(f, "a1", TrialState::kRungDone, 1.5);
  do_trial(f, "a1", TrialState::kFinished, 1.25, 1);
  do_trial(f, "a2", TrialState::kFailed, {});
  claim(f, "a3");
  do_trial(f, "a4", TrialState::kPaused, 2.0);
  f.record({{"type", "drop"}, {"trial", "a5"}});
  claim(f, "a6");
  f.record(running_fact(*f.board().find("a6"), 1));
  f.record(trial_fact({"b1", {"seed=3"}, {}}, "a1"));
  const Json before = sweep_json(f.board());
  Board copy;
  for (const Json& fact : f.board().facts()) copy.apply(fact, dir_ / "sweep");
  EXPECT_EQ(sweep_json(copy), before);
  EXPECT_EQ(copy.find("a3")->claim, 1);
  EXPECT_EQ(copy.find("a6")->state, TrialState::kRunning);
}

TEST_F(BoardTest, ALongLedgerIsRewrittenWithoutLosingAnything) {
  SweepFolder f = folder(define(3));
  for (int i = 0; i < 300; ++i) do_trial(f, "a1", TrialState::kPaused, 1.0);
  const Json before = sweep_json(f.board());
  const auto size = std::filesystem::file_size(f.dir() + "/ledger.jsonl");
  f.compact_if_due();
  EXPECT_LT(std::filesystem::file_size(f.dir() + "/ledger.jsonl"), size / 10);
  EXPECT_EQ(sweep_json(f.board()), before);
  claim(f, "a1");
  EXPECT_EQ(f.board().find("a1")->claim, 301);
}

TEST_F(BoardTest, AnExtendedPlanKeepsNumbersAndResultsAndLeavesOldPointsAlone) {
  SweepFolder f = folder(define(3));
  do_trial(f, "a1", TrialState::kFinished, 1.0);
  SweepDefinition more = define(4);
  more.trials.erase(more.trials.begin() + 1);
  EXPECT_TRUE(f.set_definition(more));
  EXPECT_FALSE(f.set_definition(more));
  EXPECT_EQ(f.board().trials().size(), 4u);
  EXPECT_EQ(f.board().find("1")->state, TrialState::kFinished);
  EXPECT_FALSE(f.board().find("a2")->is_open()) << "not in the plan that holds";
  EXPECT_TRUE(f.board().find("4")->is_open());
}

}  // namespace
}  // namespace tycho
