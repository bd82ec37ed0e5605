// What a folder says of its run, against sums by hand.
#include "trainer/report/run_summary.h"

#include "tests/trainer/report/report_fixture.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

TEST(RunSummary, HasTheSteadySpeedOfARun) {
  RunFolders runs;
  runs.add_run("a", 4, 2.5, 500);
  runs.add("a", "metrics.jsonl", {{"time", 1021}, {"attempt", 1}, {"step", 8}, {"eval.loss", 2.5}});
  const RunSummary run = summarize_run(runs / "a");
  EXPECT_EQ(run.name, "a");
  EXPECT_EQ(run.num_ranks, 4);
  EXPECT_EQ(run.num_attempts, 1);
  EXPECT_EQ(run.step, 8);
  EXPECT_EQ(run.tokens, 800);
  EXPECT_DOUBLE_EQ(run.runtime_s, 21);
  EXPECT_DOUBLE_EQ(run.tokens_per_s.value(), 500);  // without the two slow steps at the beginning
  EXPECT_DOUBLE_EQ(run.mfu.value(), 0.05);
  EXPECT_DOUBLE_EQ(run.data_wait_share.value(), 0.25);
  EXPECT_EQ(run.memory_bytes, 8000);
  EXPECT_EQ(run.planned_memory_bytes, 9000);
  EXPECT_DOUBLE_EQ(run.loss.value(), 0.5);
  EXPECT_DOUBLE_EQ(run.eval_loss.value(), 2.5);
  EXPECT_EQ(run.end, "done");
  EXPECT_FALSE(run.accuracy);
  EXPECT_FALSE(run.num_nodes);
}

TEST(RunSummary, AddsUpAttemptsAndForgetsStepsThatWereLost) {
  RunFolders runs;
  runs.add_start("a", 1000, 1, 2);
  for (int64_t step = 1; step <= 6; ++step)
    runs.add_step("a", 1000.0 + static_cast<double>(step), 1, step, 9, 100);
  runs.add_start("a", 2000, 2, 2);  // killed after step 6, resumed from step 4
  for (int64_t step = 5; step <= 8; ++step)
    runs.add_step("a", 2000.0 + static_cast<double>(step), 2, step, 3, 200);
  const RunSummary run = summarize_run(runs / "a");
  EXPECT_EQ(run.num_attempts, 2);
  EXPECT_DOUBLE_EQ(run.runtime_s, 6 + 8);
  EXPECT_EQ(run.curve("loss").x.size(), 8u);
  EXPECT_EQ(run.curve("loss").mean, (std::vector<double>{9, 9, 9, 9, 3, 3, 3, 3}));
  EXPECT_DOUBLE_EQ(run.tokens_per_s.value(), 200);
  EXPECT_EQ(run.end, "");
}

TEST(RunSummary, IsOfTheLastStartThatTrained) {
  RunFolders runs;
  runs.add_run("a", 1, 1, 100);
  const auto later = [&](const char* kind, const std::string& text) {
    runs.add("a", "events.jsonl",
             {{"time", 2000}, {"attempt", 2}, {"step", 8}, {"kind", kind}, {"text", text}});
  };
  later("not_started", "failed: [checkpoint] does not fit");
  EXPECT_EQ(summarize_run(runs / "a").end, "done");
  EXPECT_DOUBLE_EQ(summarize_run(runs / "a").runtime_s, 8);
  // Starts that failed before their first step, as folders from before that kind have them.
  runs.add("a", "events.jsonl",
           {{"time", 3000},
            {"attempt", 3},
            {"step", 8},
            {"kind", "run_start"},
            {"facts", {{"run_name", "b"}, {"num_params", 7}, {"first_step", 8}}}});
  runs.add("a", "events.jsonl",
           {{"time", 3000}, {"attempt", 3}, {"step", 8}, {"kind", "run_end"}, {"text", "failed: other"}});
  const RunSummary run = summarize_run(runs / "a");
  EXPECT_EQ(run.end, "done");
  EXPECT_EQ(run.name, "a");
  EXPECT_EQ(run.num_params, 1000);
}

TEST(RunSummary, ReadsTheMetricsThatAreAskedFor) {
  RunFolders runs;
  runs.add_run("a", 1, 1, 100);
  runs.add("a", "metrics.jsonl", {{"time", 1008}, {"attempt", 1}, {"step", 8}, {"grad/head", 2}, {"own", 1}});
  EXPECT_TRUE(summarize_run(runs / "a").curve("grad/head").x.empty());
  const RunSummary run = summarize_run(runs / "a", {"grad/*"});
  EXPECT_EQ(run.curve("grad/head").mean, std::vector<double>{2});
  EXPECT_TRUE(run.curve("own").x.empty());
  EXPECT_EQ(run.curve("tokens_per_s").x.size(), 8u);
}

TEST(RunSummary, AForkKnowsItsParentAndCountsItsOwnTokens) {
  RunFolders runs;
  runs.add_run("parent", 1, 1, 100);
  runs.add("fork", "events.jsonl",
           {{"time", 2000},
            {"attempt", 1},
            {"kind", "run_start"},
            {"facts", {{"run_name", "fork"}, {"num_ranks", 1}, {"num_params", 1000}, {"first_step", 6}}}});
  runs.add("fork", "events.jsonl",
           {{"time", 2000},
            {"attempt", 1},
            {"kind", "resume"},
            {"facts", {{"step", 6}, {"path", runs / "parent/checkpoints/step-000000006.0a"}}}});
  for (int64_t step = 7; step <= 9; ++step)
    runs.add_step("fork", 2000.0 + static_cast<double>(step), 1, step, 1, 100);
  const RunSummary fork = summarize_run(runs / "fork");
  EXPECT_EQ(fork.parent, runs / "parent");
  EXPECT_EQ(fork.first_step, 6);
  EXPECT_EQ(fork.curve("loss").x.front(), 7);
  EXPECT_EQ(fork.tokens, 900);
  EXPECT_EQ(fork.own_tokens, 300);
  EXPECT_EQ(summarize_run(runs / "parent").parent, "");
}

TEST(RunSummary, ResumingItselfMakesNoFork) {
  RunFolders runs;
  runs.add_run("a", 1, 1, 100);
  runs.add("a", "events.jsonl",
           {{"time", 2000},
            {"attempt", 2},
            {"kind", "resume"},
            {"facts", {{"step", 6}, {"path", runs / "a/checkpoints/step-000000006.0a"}}}});
  EXPECT_EQ(summarize_run(runs / "a").parent, "");
  EXPECT_EQ(summarize_run(runs / "a").own_tokens, 800);
}

TEST(RunSummary, TakesAccuracyFromEvaluationsByExamples) {
  RunFolders runs;
  runs.add_run("a", 1, 1, 100);
  for (const auto& [name, value] :
       {std::pair{"metrics/copa/0-shot/InContextLearningMultipleChoiceAccuracy", 0.5},
        std::pair{"metrics/lambada/0-shot/InContextLearningLMAccuracy", 0.7}}) {
    runs.add("a", "metrics.jsonl", {{"time", 1001}, {"attempt", 1}, {"step", 4}, {name, 0.1}});
    runs.add("a", "metrics.jsonl", {{"time", 1008}, {"attempt", 1}, {"step", 8}, {name, value}});
  }
  EXPECT_DOUBLE_EQ(summarize_run(runs / "a").accuracy.value(), 0.6);
}

TEST(RunSummary, CountsNodesAsTheLauncherSaid) {
  RunFolders runs;
  runs.add_run("torchrun", 16, 1, 100);
  runs.add("torchrun", "env.json", {{"LOCAL_WORLD_SIZE", "8"}, {"HOME", nullptr}});
  EXPECT_EQ(summarize_run(runs / "torchrun").num_nodes, 2);
  runs.add_run("slurm", 16, 1, 100);
  runs.add("slurm", "env.json", {{"SLURM_STEP_NUM_NODES", "4"}});
  EXPECT_EQ(summarize_run(runs / "slurm").num_nodes, 4);
}

TEST(RunSummary, SkipsTornLinesAndRefusesOtherFolders) {
  RunFolders runs;
  runs.add_run("a", 1, 1, 100);
  std::ofstream(runs / "a/metrics.jsonl", std::ios::app) << "{\"step\": 9, \"lo";
  std::ofstream(runs / "a/env.json") << "{";
  EXPECT_EQ(summarize_run(runs / "a").step, 8);
  std::filesystem::create_directories(runs / "empty");
  EXPECT_THROW(summarize_run(runs / "empty"), Error);
  EXPECT_THROW(summarize_run(runs / "absent"), Error);
}

}  // namespace
}  // namespace tycho
