// Runs of several processes against the same run in one: losses, weights, evaluations, and what ends them.
#include <cmath>

#include "tests/ranks/ranks_fixture.h"

namespace tycho {
namespace {

TEST_F(RanksTest, TwoAndFourRanksTrainWhatOneDoes) {
  ASSERT_EQ(run(1, "one").code, 0);
  for (const int ranks : {2, 4}) {
    const std::string name = "of" + std::to_string(ranks);
    const Outcome outcome = run(ranks, name);
    ASSERT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_CONTAINS(outcome.output, "ranks=" + std::to_string(ranks));
    for (const char* key : {"loss", "lr", "tokens"}) expect_close(numbers("one", key), numbers(name, key));
    expect_close(numbers("one", "grad_norm"), numbers(name, "grad_norm"), 1e-3);
    const std::vector<Json> alone = events("one", "eval"), together = events(name, "eval");
    ASSERT_EQ(alone.size(), 2U);
    ASSERT_EQ(together.size(), 2U);
    for (size_t i = 0; i < alone.size(); ++i) {
      const Json &a = alone[i].at("facts"), &b = together[i].at("facts");
      EXPECT_NEAR(a.at("loss").get<double>() / b.at("loss").get<double>(), 1, 1e-5);
      EXPECT_EQ(a.at("tokens"), b.at("tokens"));
    }
    EXPECT_EQ(events(name, "checkpoint").size(), 3U);
  }
}

TEST_F(RanksTest, StepsSayHowLongTheyWaitedForOtherRanks) {
  ASSERT_EQ(run(1, "one").code, 0);
  EXPECT_CONTAINS(text("one/metrics.jsonl"), "\"comm_wait_s\":null,\"comm_s\":null");
  for (const char* mesh : {"dp_replicate", "dp_shard", "tp", "pp"}) {
    ASSERT_EQ(run(2, mesh, "micro_batch=2sp parallel." + std::string(mesh) + "=2").code, 0);
    const auto step_s = numbers(mesh, "step_s"), wait_s = numbers(mesh, "comm_wait_s"),
               comm_s = numbers(mesh, "comm_s");
    ASSERT_EQ(step_s.size(), 24U);
    ASSERT_EQ(wait_s.size(), 24U);
    ASSERT_EQ(comm_s.size(), 24U);
    for (const auto& [step, seconds] : step_s) {
      EXPECT_GT(wait_s.at(step), 0) << mesh;
      EXPECT_LT(wait_s.at(step), seconds) << mesh;
      EXPECT_GT(comm_s.at(step), 0) << mesh;
    }
  }
}

TEST_F(RanksTest, LaunchersOfTwoMachinesTrainOneRun) {
  ASSERT_EQ(run(4, "together").code, 0);
  const Outcome outcome = here(
      "export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 12000)) TYCHO_TOKEN=0123456789abcdef; "
      "(exec " TYCHO_PROGRAM
      " launch -n 2 --nodes 2 --node 1 run x.lua run_dir=r) >second.log 2>&1 & second=$!; "
      "tycho launch -n 2 --nodes 2 --node 0 run x.lua run_dir=r; echo first $?; wait $second; echo second "
      "$?; "
      "cat second.log");
  EXPECT_CONTAINS(outcome.output, "first 0\n");
  EXPECT_CONTAINS(outcome.output, "second 0\n");
  EXPECT_CONTAINS(outcome.output, "ranks=4");
  EXPECT_EQ(numbers("together", "loss"), numbers("r", "loss"));
  EXPECT_EQ(final_weights("together"), final_weights("r"));
}

TEST_F(RanksTest, ResumeIsExactAndTheNumberOfRanksMayChange) {
  ASSERT_EQ(run(2, "whole").code, 0);
  ASSERT_EQ(run(2, "parts", "--until 10ba").code, 0);
  ASSERT_EQ(run(2, "parts").code, 0);
  EXPECT_EQ(final_weights("whole"), final_weights("parts"));
  ASSERT_EQ(run(2, "other", "--until 10ba").code, 0);
  const Outcome one = run(1, "other");
  ASSERT_EQ(one.code, 0) << one.output;
  EXPECT_CONTAINS(one.output, "resumed from step 10");
  expect_close(numbers("whole", "loss"), numbers("other", "loss"));
}

TEST_F(RanksTest, ASignalToOneRankStopsAllAtOneStep) {
  write(recipe("r.max_duration = \"100000ba\"\n"));
  const Outcome outcome =
      here(by_hand("x.lua run_dir=run", "x.lua run_dir=run", until_it_trains("run") + "kill -TERM $rank_1"));
  EXPECT_CONTAINS(outcome.output, "codes 143 143");
  EXPECT_CONTAINS(text("rank_0.log"), "stopped by SIGTERM after step");
  ASSERT_FALSE(events("run", "checkpoint").empty());
  EXPECT_EQ(numbers("run", "loss").rbegin()->first, events("run", "checkpoint").back().at("step"));
}

TEST_F(RanksTest, AKilledRankIsNamedAndTheOthersEnd) {
  write(recipe("r.max_duration = \"100000ba\"\n"));
  for (const int killed : {0, 1}) {
    const std::string run = "run" + std::to_string(killed), arguments = "x.lua run_dir=" + run;
    const Outcome outcome =
        here(by_hand(arguments, arguments, until_it_trains(run) + "kill -9 $rank_" + std::to_string(killed)));
    EXPECT_CONTAINS(outcome.output, killed == 0 ? "codes 137 143" : "codes 143 137");
    const std::string log = text("rank_" + std::to_string(1 - killed) + ".log");
    EXPECT_CONTAINS(log, "[parallel] rank " + std::to_string(killed) + " (");
    EXPECT_CONTAINS(log, "resumes from the newest checkpoint");
    EXPECT_CONTAINS(log, "[ranks] each rank left its last collectives in " + run + "/collectives");
    const Outcome report = here("tycho report --collectives " + run);
    EXPECT_EQ(report.code, 0) << report.output;
    EXPECT_CONTAINS(report.output, fmt::format("  rank {}    left no file", killed));
    EXPECT_CONTAINS(report.output, fmt::format("  left no file: rank {}\n", killed));
    EXPECT_CONTAINS(report.output, fmt::format("Look at rank {} first", killed));
  }
}

// No step boundary is ever reached: rank 1 loops in a callback, and the others wait for it in a collective.
TEST_F(RanksTest, ARunThatHangsSaysWhichRankTheOthersWaitFor) {
  write(
      recipe("r.max_duration = \"100000ba\"\n"
             "r.callbacks.stuck = t.everywhere { time_limit = \"600s\", batch_end = function(ctx)\n"
             "  if ctx.step == 5 and ctx.dist.rank == 1 then while true do end end\nend }\n"));
  const Outcome outcome = here(
      "true; " +
      in_background(TYCHO_PROGRAM " launch -n 3 --grace 1 run x.lua run_dir=run global_batch=6sp", "all") +
      "for i in $(seq 1200); do grep -q '\"step\":5' run/metrics.jsonl 2>/dev/null && break; sleep 0.05; "
      "done; sleep 1; "
      "for i in $(seq 60); do tycho ctl run collectives >answer 2>&1; echo code $?; "
      "grep -q 'has not called it: rank 1' answer && break; sleep 1; done; "
      "tycho report run --collectives >again; echo report $?; "
      "kill -TERM $all; wait $all");
  EXPECT_CONTAINS(outcome.output, "code 0\n");
  EXPECT_CONTAINS(outcome.output, "report 0\n");
  for (const char* file : {"answer", "again"}) {
    EXPECT_CONTAINS(text(file), "  rank 1    step 5, in callback stuck");
    EXPECT_CONTAINS(text(file), "has not called it: rank 1");
    EXPECT_CONTAINS(text(file), "Look at rank 1 first");
  }
  const Outcome after = here("tycho ctl run collectives");
  EXPECT_EQ(after.code, 12);
  EXPECT_CONTAINS(after.output, "[tycho ctl] nothing runs in run; `tycho report run --collectives` shows");
}

TEST_F(RanksTest, ASignalEndsTheWaitForRanksThatDoNotCome) {
  const Outcome ended = here(
      "port=$((20000 + $$ % 10000)); " +
      in_background("env TYCHO_NUM_RANKS=3 TYCHO_NUM_LOCAL_RANKS=3 TYCHO_ADDRESS=127.0.0.1 TYCHO_PORT=$port "
                    "TYCHO_TOKEN=0123456789abcdef TYCHO_RANK=0 TYCHO_LOCAL_RANK=0 " TYCHO_PROGRAM
                    " run x.lua run_dir=alone",
                    "rank_0") +
      "for i in $(seq 2400); do grep -q 'waiting for' rank_0.log && break; sleep 0.05; done; kill -TERM "
      "$rank_0; "
      "wait $rank_0; echo code $?; cat rank_0.log");
  EXPECT_CONTAINS(ended.output, "code 143");
  EXPECT_CONTAINS(ended.output, "[ranks] waiting for ranks 1, 2 of 3; gives up in 59");
  EXPECT_CONTAINS(ended.output, "[ranks] stopped by SIGTERM while rank 0 was waiting for ranks 1, 2");
}

TEST_F(RanksTest, ATokenThatDiffersKeepsARankOut) {
  const Outcome ended = here(
      "port=$((20000 + $$ % 10000)); common='TYCHO_NUM_RANKS=2 TYCHO_NUM_LOCAL_RANKS=2 "
      "TYCHO_ADDRESS=127.0.0.1'; " +
      in_background("env $common TYCHO_PORT=$port TYCHO_TOKEN=0123456789abcdef TYCHO_RANK=0 "
                    "TYCHO_LOCAL_RANK=0 " TYCHO_PROGRAM " run x.lua run_dir=two",
                    "rank_0") +
      in_background("env $common TYCHO_PORT=$port TYCHO_TOKEN=fedcba9876543210 TYCHO_RANK=1 "
                    "TYCHO_LOCAL_RANK=1 " TYCHO_PROGRAM " run x.lua run_dir=two",
                    "rank_1") +
      "for i in $(seq 2400); do grep -q 'did not know the token' rank_0.log && grep -q 'tokens differ' "
      "rank_1.log "
      "&& break; sleep 0.05; done; kill -TERM $rank_0 $rank_1; wait; cat rank_0.log rank_1.log");
  EXPECT_CONTAINS(ended.output, "clients did not know the token");
  EXPECT_CONTAINS(ended.output, "it belongs to another run, or the tokens differ");
  EXPECT_EQ(ended.output.find("0123456789abcdef"), std::string::npos) << ended.output;
}

TEST_F(RanksTest, RanksWithDifferentRecipesDoNotStart) {
  const Outcome outcome = here(by_hand("x.lua run_dir=run", "x.lua run_dir=run optimizer.lr=1e-3", "true"));
  EXPECT_CONTAINS(outcome.output, "codes 11 11");
  for (const char* log : {"rank_0.log", "rank_1.log"}) {
    EXPECT_CONTAINS(text(log), "rank 1 has a different configuration than rank 0");
    EXPECT_CONTAINS(text(log), "recipe.optimizer.lr");
    EXPECT_CONTAINS(text(log), "0.005 -> 0.001");
  }
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(RanksTest, RanksWithDifferentFilesDoNotStart) {
  fs::create_directories(folder_ / "y");
  write("-- the same, with a remark\n" + recipe(), "y/x.lua");
  const Outcome outcome = here(by_hand("x.lua run_dir=run", "y/x.lua run_dir=run", "true"));
  EXPECT_CONTAINS(outcome.output, "codes 11 11");
  EXPECT_CONTAINS(text("rank_1.log"), "file.");
}

TEST_F(RanksTest, ACallbackThatFailsOnOneRankStopsAllAndIsNamed) {
  write(
      recipe("r.callbacks.odd = t.everywhere { batch_end = function(ctx)\n"
             "  if ctx.step == 5 and ctx.dist.rank == 1 then error(\"only here\") end\nend }\n"));
  const Outcome outcome = run(2, "run");
  EXPECT_EQ(outcome.code, 10);
  EXPECT_CONTAINS(outcome.output, "rank 1, batch_end of \"odd\"");
  EXPECT_CONTAINS(outcome.output, "only here");
  EXPECT_EQ(events("run", "checkpoint").back().at("step"), 5);
}

TEST_F(RanksTest, AScheduleThatFailsOnAllRanksOrOnOneStopsAllWithACheckpoint) {
  for (const char* where : {"true", "odd"}) {
    SCOPED_TRACE(where);
    write(recipe(
        std::string(
            "local odd = false\n"
            "r.callbacks.mark = t.everywhere { batch_end = function(ctx) odd = ctx.dist.rank == 1 end }\n"
            "r.scheduler = t.sched.dynamic(\"mine\", function(s)\n  if s.step == 7 and ") +
        where + " then error(\"here\") end\n  return 1\nend)\n"));
    const Outcome outcome = run(2, where);
    EXPECT_EQ(outcome.code, 10);
    EXPECT_CONTAINS(outcome.output, "before step 8: the schedule mine failed: ");
    EXPECT_CONTAINS(outcome.output, ": here. The run stopped with a checkpoint");
    EXPECT_EQ(events(where, "checkpoint").back().at("step"), 7);
  }
}

TEST_F(RanksTest, ACallbackInWhichOthersWaitReportsItsError) {
  write(
      recipe("r.callbacks.odd = t.everywhere { batch_end = function(ctx)\n"
             "  if ctx.step == 5 and ctx.dist.rank == 1 then error(\"only here\") end\n"
             "  ctx.dist:sum(1)\nend }\n"));
  const Outcome outcome = run(2, "run");
  EXPECT_EQ(outcome.code, 10);
  EXPECT_CONTAINS(outcome.output, "rank 1, batch_end of \"odd\"");
  EXPECT_CONTAINS(outcome.output, "only here");
  EXPECT_EQ(outcome.output.find("failed in this callback"), std::string::npos) << outcome.output;
}

TEST_F(RanksTest, EverywhereCallbacksReduceOverRanks) {
  write(
      recipe("r.callbacks.count = t.everywhere { batch_end = function(ctx)\n"
             "  ctx.log:metric(\"ranks_plus_one\", ctx.dist:sum(ctx.dist.rank + 1))\nend }\n"));
  const Outcome outcome = run(3, "run", "global_batch=6sp");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const std::map<int64_t, double> sums = numbers("run", "ranks_plus_one");
  ASSERT_EQ(sums.size(), 24U);
  for (const auto& [step, sum] : sums) EXPECT_EQ(sum, 6) << step;
}

TEST_F(RanksTest, AnObserverOfLocalZeroRunsOnOneRankOfEachMachine) {
  write(recipe(
      "r.callbacks.machine = t.observe { ranks = \"local_zero\", every = \"8ba\", batch_end = function(ctx)\n"
      "  ctx.log:metric(\"seen\", ctx.step)\n  ctx.log:info(\"here\")\nend }\n"
      "r.callbacks.all = t.everywhere { every = \"8ba\", batch_end = function(ctx)\n"
      "  ctx.log:metric(\"once\", 1)\nend }\n"));
  const Outcome outcome = here(two_machines("run"));
  EXPECT_CONTAINS(outcome.output, "codes 0 0");
  const std::map<int64_t, double> wanted = {{8, 8}, {16, 16}, {24, 24}};
  EXPECT_EQ(numbers("run", "seen"), wanted) << text("rank_0.log") << text("rank_1.log");
  EXPECT_EQ(numbers("run", "seen.rank_1"), wanted);
  EXPECT_EQ(numbers("run", "once").size(), 3U);
  EXPECT_TRUE(numbers("run", "once.rank_1").empty());
  const std::vector<Json> said = events("run", "info");
  ASSERT_EQ(said.size(), 6U);
  EXPECT_EQ(said[1].at("text"), "rank 1: here");
  EXPECT_EQ(said[1].at("facts").at("rank"), 1);

  ASSERT_EQ(run(2, "machine_of_two").code, 0);
  EXPECT_TRUE(numbers("machine_of_two", "seen.rank_1").empty()) << "both ranks are on one machine";
}

TEST_F(RanksTest, AnObserverThatFailsOnSeveralMachinesStopsThemAll) {
  write(
      recipe("r.callbacks.odd = t.observe { ranks = \"local_zero\", batch_end = function(ctx)\n"
             "  if ctx.step == 5 then error(\"only here\") end\nend }\n"
             "r.callbacks.odd.on_error = \"stop\"\n"));
  const Outcome outcome = here(two_machines("run"));
  EXPECT_CONTAINS(outcome.output, "codes 10 10");
  EXPECT_CONTAINS(text("rank_0.log"), "of \"odd\"");
}

TEST_F(RanksTest, AProbeOfSeveralRanksLeavesNothing) {
  fs::create_directory(folder_ / "tmp");
  for (const int ranks : {1, 2}) {
    const Outcome outcome = here("export TMPDIR=$PWD/tmp; tycho launch -n " + std::to_string(ranks) +
                                 " plan x.lua --probe --json");
    ASSERT_EQ(outcome.code, 0) << outcome.output;
    const Json plan = parse_json(outcome.output, "plan"), &probe = plan.at("probe");
    EXPECT_EQ(plan.at("num_ranks"), ranks);
    EXPECT_EQ(probe.at("num_steps"), 3);
    EXPECT_GT(probe.at("memory_bytes"), 0);
    const double step_s = probe.at("step_s");
    EXPECT_NEAR(probe.at("tokens_per_s").get<double>(), 8 * 32 / step_s, 1e-6 * 8 * 32 / step_s);
    EXPECT_NEAR(probe.at("seconds").get<double>(), 24 * step_s, 1e-6 * step_s);
    EXPECT_TRUE(fs::is_empty(folder_ / "tmp"));
    EXPECT_FALSE(fs::exists(folder_ / "runs"));
  }
  const Outcome absent = here("tycho plan x.lua --probe train_data.local_dir=nowhere");
  EXPECT_EQ(absent.code, 12);
  EXPECT_CONTAINS(absent.output, "[mds] nowhere/train/index.json does not exist");
}

TEST_F(RanksTest, EverywhereCallbacksSeeCheckpointsAtTheSameStep) {
  write(
      // In the background a checkpoint may be overtaken by the next, and then only that one is told of.
      recipe("r.ckpt.async = false\n"
             "r.callbacks.saved = t.everywhere { ckpt_saved = function(ctx)\n"
             "  ctx.log:metric(\"saved_on\", ctx.dist:sum(1))\nend }\n"));
  const Outcome outcome = run(2, "run");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const std::map<int64_t, double> counts = numbers("run", "saved_on");
  EXPECT_EQ(counts.size(), 3U);
  for (const auto& [step, count] : counts) EXPECT_EQ(count, 2) << step;
}

TEST_F(RanksTest, ABatchThatRanksCannotShareIsRefused) {
  const Outcome outcome = run(3, "run");
  EXPECT_EQ(outcome.code, 11);
  EXPECT_CONTAINS(outcome.output, "global_batch");
  EXPECT_CONTAINS(outcome.output, "3 ranks");
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

// Row 46 of issue 30: every rank finds what is wrong with a start; the launcher prints it once.
TEST_F(RanksTest, WhatIsWrongWithAStartIsPrintedOnce) {
  ASSERT_EQ(run(2, "other", "max_duration=1ba").code, 0);
  const std::pair<const char*, const char*> starts[] = {
      {"run_dir=run eval_data.same.local_dir=missing", "index.json does not exist, and the run needs it"},
      {"run_dir=run tokenizer=missing.json", "missing.json does not exist, and the run needs it"},
      {"run_dir=run model.vocab_size=128", ": train_data: "},
      {"run_dir=run model.weights=missing", "\n[checkpoint] missing is not a folder"},
      {"run_dir=other model.width=64 max_duration=2ba",
       "\n[checkpoint] other/checkpoints/"},  // of another model
  };
  for (const auto& [arguments, part] : starts) {
    const Outcome outcome = here(std::string("tycho launch -n 2 run x.lua ") + arguments);
    EXPECT_NE(outcome.code, 0) << arguments;
    EXPECT_CONTAINS(outcome.output, part);
    EXPECT_EQ(outcome.output.find(part), outcome.output.rfind(part)) << arguments << "\n" << outcome.output;
  }
}

TEST_F(RanksTest, ARunWithoutDataSaysAllThatIsMissingAndWhereItIsNamed) {
  ASSERT_EQ(here("tycho init p").code, 0);
  for (const char* verb : {"run", "launch -n 2 run"}) {
    const Outcome outcome = here(std::string("cd p && tycho ") + verb + " recipes/first.lua");
    EXPECT_EQ(outcome.code, 12) << outcome.output;
    EXPECT_CONTAINS(outcome.output, "recipes/first.lua:");
    EXPECT_CONTAINS(outcome.output,
                    "data/tokenizer.json does not exist, and the run needs it. Name the tokenizer.json");
    EXPECT_CONTAINS(outcome.output, "index.json does not exist, and the run needs it");
    EXPECT_EQ(outcome.output.find("data/tokenizer.json does"),
              outcome.output.rfind("data/tokenizer.json does"));
    EXPECT_FALSE(fs::exists(folder_ / "p/runs"));
  }
}

TEST_F(RanksTest, AMeshHoldsTheRunToItsNumberOfRanks) {
  const Outcome refused = run(2, "run", "parallel.dp_replicate=4");
  EXPECT_EQ(refused.code, 11);
  EXPECT_CONTAINS(refused.output,
                  "parallel.dp_replicate=4: the mesh has 4 ranks, and the run has 2; start 4");
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  for (const char* pins : {"", "parallel.dp_replicate=2"}) {
    const Outcome outcome = run(2, std::string("of") + pins, std::string("max_duration=4ba ") + pins);
    ASSERT_EQ(outcome.code, 0) << outcome.output;
  }
  EXPECT_EQ(numbers("of", "loss"), numbers("ofparallel.dp_replicate=2", "loss"));
}

TEST_F(RanksTest, AFolderThatAnotherRunOwnsIsRefusedByAllRanks) {
  write(recipe("r.max_duration = \"100000ba\"\n"));
  const Outcome outcome =
      here("true; " + in_background(TYCHO_PROGRAM " launch -n 2 run x.lua run_dir=run", "first") +
           until_it_trains("run") + by_hand("x.lua run_dir=run", "x.lua run_dir=run", "true") +
           "; kill -TERM $first; wait $first; echo owner $?");
  EXPECT_CONTAINS(outcome.output, "codes 13 13") << text("rank_0.log");
  EXPECT_CONTAINS(outcome.output, "owner 143") << text("first.log");
  EXPECT_CONTAINS(text("rank_1.log"), "rank 0 ended the run: ");
}

// Both folders are called runs/tiny, and their checkpoints are of one step and name: what machines with disks
// of their own may find there.
TEST_F(RanksTest, ParanoidRanksNoticeThatReplicasDiverged) {
  const std::string first_half = "TYCHO_NUM_RANKS=1 tycho run x.lua --until 8ba --plain >log";
  const Outcome made = here("mkdir one two; cp x.lua one; cp x.lua two; (cd one && " + first_half +
                            "); (cd two && " + first_half +
                            " seed=18); mv two/runs/tiny/checkpoints/step-* two/runs/tiny/checkpoints/$(ls "
                            "one/runs/tiny/checkpoints | grep step-)");
  ASSERT_EQ(made.code, 0) << made.output;
  const auto with = [&](const std::string& option) {
    return here(by_hand("x.lua " + option, "x.lua " + option, "true", "run", {"one", "two"}));
  };
  const Outcome paranoid = with("--paranoid");
  EXPECT_CONTAINS(paranoid.output, "codes 11 11");
  for (const char* log : {"rank_0.log", "rank_1.log"})
    EXPECT_CONTAINS(text(log),
                    "[paranoid] after step 8 replicas have diverged: model.embed_tokens.weight is ");
  EXPECT_EQ(numbers("one/runs/tiny", "loss").size(), 8U);
  EXPECT_CONTAINS(with("").output, "codes 0 0");  // nobody else would have noticed
}

TEST_F(RanksTest, ParanoidRanksComputeTheSame) {
  ASSERT_EQ(run(2, "trusting").code, 0);
  const Outcome outcome = run(2, "paranoid", "--paranoid");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(final_weights("trusting"), final_weights("paranoid"));
  const Outcome alone = run(1, "alone", "--paranoid --until 1ba");
  EXPECT_EQ(alone.code, 0);
  EXPECT_CONTAINS(alone.output, "--paranoid compares ranks, but this run has only one");
}

}  // namespace
}  // namespace tycho
