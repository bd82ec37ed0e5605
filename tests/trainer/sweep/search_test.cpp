// What comes next: order, promotions, the last of a rung, repetitions, and the verdict.
#include "trainer/sweep/search.h"

#include <random>

#include "tests/trainer/sweep/sweep_fixture.h"

namespace tycho {
namespace {

using SearchTest = SweepBoardTest;

TEST_F(SearchTest, UnfinishedTrialsComeBeforeNewOnes) {
  SweepFolder f = folder(define(3));
  do_trial(f, "a1", TrialState::kFinished, 1.0);
  do_trial(f, "a2", TrialState::kPaused, {});
  auto task = next_task(f.board(), "here");
  ASSERT_TRUE(task);
  EXPECT_EQ(task->trial, "a2");
  EXPECT_EQ(task->claim, 2);
  EXPECT_EQ(next_task(f.board(), "here", {"a2"})->trial, "a3");
  EXPECT_FALSE(next_task(f.board(), "here", {"a2", "a3"}));
}

TEST_F(SearchTest, ATrialThatFailedHereIsLeftToOthersWhileThereIsMore) {
  SweepFolder f = folder(define(2));
  claim(f, "a1");
  f.record(end_fact(*f.board().find("a1"), 1, 0, {.state = TrialState::kPaused, .retries = 1}));
  EXPECT_EQ(next_task(f.board(), "here")->trial, "a2");
  EXPECT_EQ(next_task(f.board(), "elsewhere")->trial, "a1");
  EXPECT_EQ(next_task(f.board(), "here", {"a2"})->trial, "a1");
}

TEST_F(SearchTest, TheBestThirdOfARungGoesOnBeforeNewTrialsBegin) {
  SweepFolder f = folder(define(9, asha({{3, DurationUnit::kBatch}, {9, DurationUnit::kBatch}})));
  do_trial(f, "a1", TrialState::kRungDone, 5.0);
  do_trial(f, "a2", TrialState::kRungDone, 3.0);
  EXPECT_EQ(next_task(f.board(), "here")->trial, "a3") << "two of three decide nothing";
  do_trial(f, "a3", TrialState::kStopped, {});  // diverged: the worst
  const auto task = next_task(f.board(), "here");
  EXPECT_EQ(task->trial, "a2");
  EXPECT_EQ(task->rung, 1);
  EXPECT_EQ(task->until, "9ba");
  claim(f, "a2", 1);
  EXPECT_EQ(next_task(f.board(), "here")->trial, "a4");
}

TEST_F(SearchTest, ARungThatIsCompleteSendsOnOneAtLeastAndTheSearchEnds) {
  SweepFolder f = folder(
      define(2, asha({{1, DurationUnit::kBatch}, {2, DurationUnit::kBatch}, {3, DurationUnit::kBatch}})));
  do_trial(f, "a1", TrialState::kRungDone, 5.0);
  do_trial(f, "a2", TrialState::kRungDone, 3.0);
  for (int64_t rung = 1; rung < 3; ++rung) {
    EXPECT_FALSE(search_is_settled(f.board()));
    const auto task = next_task(f.board(), "here");
    ASSERT_TRUE(task);
    EXPECT_EQ(task->trial, "a2");
    EXPECT_EQ(task->rung, rung);
    do_trial(f, "a2", rung == 2 ? TrialState::kFinished : TrialState::kRungDone, 2.0, rung);
  }
  EXPECT_TRUE(search_is_settled(f.board()));
  EXPECT_FALSE(next_task(f.board(), "here"));
}

// Against synchronous halving done by hand: whatever order results come in, at least its survivors get there.
TEST_F(SearchTest, InAnyOrderTheBestOfAllIsAmongThoseThatReachTheTop) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    dir_.~TempDir();
    new (&dir_) TempDir();
    SweepFolder f = folder(
        define(18, asha({{1, DurationUnit::kBatch}, {2, DurationUnit::kBatch}, {3, DurationUnit::kBatch}})));
    std::mt19937 random(seed);
    std::vector<Task> running;
    for (int guard = 0; guard < 1000; ++guard) {
      const auto task = next_task(f.board(), "here");
      if (task && running.size() < 4) {
        claim(f, task->trial, task->rung);
        running.push_back(*task);
        continue;
      }
      if (running.empty()) break;
      const size_t i = random() % running.size();
      const Task done = running[i];
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      const double value = std::abs(std::stod(done.trial.substr(1)) - 11);  // a11 is the best
      end(f, done.trial, done.rung == 2 ? TrialState::kFinished : TrialState::kRungDone, value, done.rung);
    }
    EXPECT_TRUE(search_is_settled(f.board()));
    ASSERT_FALSE(ranking(f.board()).empty());
    EXPECT_EQ(ranking(f.board())[0]->plan.id, "a11") << seed;
  }
}

TEST_F(SearchTest, FinalistsAreRepeatedWithSeedsThatTheyHaveNotHad) {
  SweepDefinition definition = define(3);
  definition.config.seeds = {17, 18};
  definition.tree = to_json(definition.config);
  SweepFolder f = folder(definition);
  for (const auto& [id, value] : {std::pair("a1", 1.0), {"a2", 2.0}})
    do_trial(f, id, TrialState::kFinished, value);
  EXPECT_TRUE(missing_repetitions(f.board(), 17).empty()) << "the search goes on";
  do_trial(f, "a3", TrialState::kFinished, 3.0);
  const auto missing = missing_repetitions(f.board(), 17);
  ASSERT_EQ(missing.size(), 2u);
  EXPECT_EQ(missing[0].second, "a1");
  EXPECT_EQ(missing[0].first.pins, (std::vector<std::string>{"optimizer.lr=1", "seed=18"}));
  for (const auto& [plan, finalist] : missing) f.record(trial_fact(plan, finalist));
  EXPECT_TRUE(missing_repetitions(f.board(), 17).empty());
  EXPECT_EQ(next_task(f.board(), "here")->trial, missing[0].first.id);
}

TEST_F(SearchTest, ADifferenceWithinTheNoiseOfSeedsNamesNoWinner) {
  SweepDefinition definition = define(2);
  definition.config.seeds = {17, 18};
  definition.tree = to_json(definition.config);
  SweepFolder f = folder(definition);
  do_trial(f, "a1", TrialState::kFinished, 3.000);
  do_trial(f, "a2", TrialState::kFinished, 3.004);
  EXPECT_NE(verdict_on_winner(f.board()).find("the variation between seeds is unknown: `tycho sweep set " +
                                              definition.name + " 'seeds={17,18,19}'`"),
            std::string::npos);
  for (const auto& [plan, finalist] : missing_repetitions(f.board(), 17)) {
    f.record(trial_fact(plan, finalist));
    do_trial(f, plan.id, TrialState::kFinished, finalist == "a1" ? 3.010 : 3.000);
  }
  // means 3.005 and 3.002, sigmas 0.00707 and 0.00283: pooled 0.00539
  const std::string verdict = verdict_on_winner(f.board());
  EXPECT_NE(verdict.find("0.003 < seed sigma 0.005385 (4 runs): no clear winner"), std::string::npos)
      << verdict;
}

}  // namespace
}  // namespace tycho
