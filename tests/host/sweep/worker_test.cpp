// Sweeps with real processes: what is tried, who goes on, and what kill -9, Ctrl-C and failures leave.
#include "tests/host/sweep/sweep_fixture.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr const char* kChoices =
    "s.space[\"optimizer.lr\"] = t.space.choice { 1e-4, 1e-3, 1e-2 }\ns.search = t.search.grid()\n";

TEST_F(SweepTest, AGridTriesEveryPointOnceAndSaysWhichWasBest) {
  write(sweep(kChoices), "s.lua");
  const Outcome swept = run("sweep s.lua");
  ASSERT_EQ(swept.code, 0) << swept.output;
  const Json first = table();
  ASSERT_EQ(first.at("trials").size(), 3u);
  EXPECT_EQ(states(first), std::set<std::string>{"finished"});
  const Outcome best = run("sweep best s");
  EXPECT_EQ(best.code, 0) << best.output;
  EXPECT_CONTAINS(best.output, "tycho run recipe.lua optimizer.lr=0.001");
  EXPECT_CONTAINS(read("sweeps/s/best.lua"), "require \"recipe\" :extend \"s-best\"");
  EXPECT_EQ(run("check sweeps/s/best.lua").code, 0);

  // The same trial never runs twice; new points extend the sweep.
  const std::string steps = read(run_dir(first.at("trials")[0]) + "/steps.txt");
  write(sweep("s.space[\"optimizer.lr\"] = t.space.choice { 1e-4, 1e-3, 1e-2, 3e-2 }\ns.search = "
              "t.search.grid()\n"),
        "s.lua");
  EXPECT_EQ(run("sweep s.lua").code, 0);
  EXPECT_EQ(table().at("trials").size(), 4u);
  EXPECT_EQ(read(run_dir(first.at("trials")[0]) + "/steps.txt"), steps);
}

TEST_F(SweepTest, TrialsOfAWorkerThatIsATaskOfSlurmAreNotRanks) {
  write(sweep(kChoices), "s.lua");
  const Outcome swept = here("SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=2 ./bin/tycho sweep s.lua");
  ASSERT_EQ(swept.code, 0) << swept.output;
  EXPECT_EQ(read(run_dir(table().at("trials")[0]) + "/ranks"), "1\n");
}

TEST_F(SweepTest, TrialsAreComparedByTheLossOfOneSet) {
  write(sweep(std::string(kChoices) +
              "s.pins[\"eval_data.c4\"] = \"mds{local_dir=d}\"\ns.metric.name = \"eval.c4.loss\"\n"
              "s.report.columns = { \"optimizer.lr\", \"eval.c4.loss\", \"eval.loss\" }\n"),
        "s.lua");
  const Outcome swept = run("sweep s.lua");
  ASSERT_EQ(swept.code, 0) << swept.output;
  EXPECT_CONTAINS(run("sweep best s").output, "optimizer.lr=0.01");
  const std::string rows = run("sweep table s --csv").output;
  EXPECT_CONTAINS(rows, "trial,optimizer.lr,eval.c4.loss,eval.loss\n3,0.01,0,");
  EXPECT_EQ(run("sweep table s --cols eval.c5.loss").code, 2);
}

TEST_F(SweepTest, ARecipeThatChangedForksTheSweepAndSaysWhatChanged) {
  write(sweep(kChoices), "s.lua");
  ASSERT_EQ(run("sweep s.lua").code, 0);
  write(whole("r.max_duration = \"20ba\"\nr.seed = 3\n"), "recipe.lua");
  const Outcome resumed = run("sweep resume s");
  EXPECT_EQ(resumed.code, 10) << resumed.output;
  EXPECT_CONTAINS(resumed.output, "recipe.lua has changed");
  const Outcome forked = run("sweep s.lua");
  EXPECT_EQ(forked.code, 0) << forked.output;
  EXPECT_CONTAINS(forked.output, "this sweep is now sweeps/s-2");
  EXPECT_EQ(states(table("s-2")), std::set<std::string>{"finished"});
}

TEST_F(SweepTest, HalvingSendsTheBestOnFromTheirOwnCheckpoints) {
  write(sweep("s.space[\"optimizer.lr\"] = t.space.log(1e-5, 1e-1)\n"
              "s.search = t.search.asha { trials = 9, eta = 3, rungs = { \"3ba\", \"8ba\", \"20ba\" } }\n"),
        "s.lua");
  const Outcome swept = run("sweep s.lua --workers 2");
  ASSERT_EQ(swept.code, 0) << swept.output;
  int finished = 0;
  const Json shown = table();
  for (const Json& trial : shown.at("trials")) {
    const std::string steps = read(run_dir(trial) + "/steps.txt");
    const auto count = static_cast<size_t>(std::count(steps.begin(), steps.end(), '\n'));
    EXPECT_EQ(count, trial.at("step").get<size_t>()) << "a step was done twice";
    finished += trial.at("state") == "finished" ? 1 : 0;
    EXPECT_TRUE(count == 3 || count == 8 || count == 20) << count;
  }
  EXPECT_GE(finished, 1) << swept.output;
  EXPECT_LE(finished, 3);
  const Outcome report = run("sweep report s");
  EXPECT_EQ(report.code, 0) << report.output;
  EXPECT_CONTAINS(read("sweeps/s/report.html"), "Trials that got this far");
  EXPECT_CONTAINS(read("sweeps/s/report.md"), "| trial |");
}

TEST_F(SweepTest, FinalistsRunWithEverySeedAndTheDifferenceIsHeldAgainstTheirNoise) {
  write(sweep(std::string(kChoices) + "s.seeds = { 17, 18, 19 }\n"), "s.lua");
  const Outcome swept = run("sweep s.lua");
  ASSERT_EQ(swept.code, 0) << swept.output;
  const Json shown = table();
  EXPECT_EQ(shown.at("trials").size(), 3u + 2 * 2) << "17 is the recipe's own";
  EXPECT_CONTAINS(shown.at("verdict").get<std::string>(), "seed sigma");
}

TEST_F(SweepTest, EveryWayToFailGetsItsOwnEnd) {
  write(whole("r.max_duration = \"20ba\"\nr.global_batch = \"8sp\"\nr.micro_batch = \"8sp\"\n"),
        "recipe.lua");
  write(sweep("s.space.what = t.space.zip { [\"optimizer.lr\"] = { 1e-3, 2, 1e-3, 1e-3, 1e-3, 1e-3 },\n"
              "  [\"optimizer.weight_decay\"] = { 0, 0, 0.1, 9, 8, 0.2 },\n"
              "  [\"optimizer.betas\"] = { \"[0.9,0.95]\", \"[0.9,0.95]\", \"[0.5,0.95]\", \"[0.9,0.95]\", "
              "\"[0.9,0.95]\", \"[0.9,0.95]\" },\n"
              "  [\"model.heads\"] = { 4, 4, 4, 4, 4, 5 } }\ns.search = t.search.grid()\n"),
        "s.lua");
  const Outcome planned = run("sweep plan s.lua");
  EXPECT_EQ(planned.code, 10) << "five heads do not divide the width: said before anything starts\n"
                              << planned.output;
  write(read("s.lua").replace(read("s.lua").rfind("4, 5 }"), 6, "4, 4 }"), "s.lua");
  const Outcome swept = run("sweep s.lua");
  EXPECT_EQ(swept.code, 0) << swept.output;
  const Json trials = table().at("trials");
  ASSERT_EQ(trials.size(), 6u);
  EXPECT_EQ(trials[0].at("state"), "finished");
  EXPECT_EQ(trials[1].at("state"), "stopped");
  EXPECT_EQ(trials[1].at("note"), "diverged");
  EXPECT_TRUE(trials[1].at("value").is_null()) << "as bad as can be";
  EXPECT_EQ(trials[2].at("state"), "finished");
  EXPECT_EQ(trials[2].at("note"), "micro_batch=4sp after out of memory");
  EXPECT_EQ(trials[3].at("state"), "failed");
  EXPECT_CONTAINS(trials[3].at("note").get<std::string>(), "No space left on device, 3 times");
  EXPECT_EQ(trials[4].at("state"), "finished");
  const Outcome retried = run("sweep retry s --failed");
  EXPECT_CONTAINS(retried.output, "1 trial to be retried");
  EXPECT_CONTAINS(run("sweep drop s 4").output, "1 trial dropped");
}

// The trial itself ends well: training was healthy.
TEST_F(SweepTest, ATrialWhoseLastEvaluationIsNaNHasDiverged) {
  write(sweep("s.space[\"optimizer.weight_decay\"] = t.space.choice { 0, 7 }\ns.search = t.search.grid()\n"
              "s.pins[\"eval_data.c4\"] = \"mds{local_dir=d}\"\ns.metric.name = \"eval.loss\"\n"),
        "s.lua");
  const Outcome swept = run("sweep s.lua");
  ASSERT_EQ(swept.code, 0) << swept.output;
  const Json trials = table().at("trials");
  EXPECT_EQ(trials[0].at("state"), "finished");
  EXPECT_EQ(trials[1].at("state"), "stopped");
  EXPECT_EQ(trials[1].at("note"), "diverged: eval.loss is nan");
  EXPECT_TRUE(trials[1].at("value").is_null());
  EXPECT_CONTAINS(run("sweep best s").output, "optimizer.weight_decay=0");
}

TEST_F(SweepTest, RulesStopTrialsEarly) {
  write(sweep("s.space[\"optimizer.lr\"] = t.space.choice { 1e-3, 0.5 }\ns.search = t.search.grid()\n"
              "s.stop.bad = function(m) return m.step > 3 and m.train.loss > 6 end\n"),
        "s.lua");
  const Outcome swept = here("TYCHO_STEP_MS=200 ./bin/tycho sweep s.lua --workers 2");
  ASSERT_EQ(swept.code, 0) << swept.output;
  const Json trials = table().at("trials");
  EXPECT_EQ(trials[0].at("state"), "finished") << trials.dump();
  EXPECT_EQ(trials[1].at("state"), "stopped") << trials.dump();
  EXPECT_EQ(trials[1].at("note"), "bad");
}

TEST_F(SweepTest, ALinkInThePlaceOfATrialIsNeitherWrittenToNorEmptied) {
  write(sweep(kChoices), "s.lua");
  ASSERT_EQ(run("sweep s.lua").code, 0);
  const Json first = table().at("trials").at(0);
  fs::create_directories(folder_ / "foreign/checkpoints");
  write("theirs", "foreign/checkpoints/file");
  fs::remove_all(folder_ / "sweeps/s");
  fs::create_directories(folder_ / "sweeps/s/trials");
  fs::create_directory_symlink(folder_ / "foreign", folder_ / run_dir(first));
  write(sweep(std::string(kChoices) + "s.keep_checkpoints = 1\n"), "s.lua");
  const Outcome swept = run("sweep s.lua");
  EXPECT_CONTAINS(swept.output, ", got a link: remove it");
  for (const Json& trial : table().at("trials"))
    EXPECT_EQ(trial.at("state"), trial.at("trial") == first.at("trial") ? "failed" : "finished")
        << swept.output;
  EXPECT_EQ(read("foreign/checkpoints/file"), "theirs");
  EXPECT_FALSE(fs::exists(folder_ / "foreign/output.txt"));
}

TEST_F(SweepTest, ALinkInThePlaceOfATrialsOutputIsNotFollowed) {
  write(sweep(kChoices), "s.lua");
  ASSERT_EQ(run("sweep s.lua").code, 0);
  const Json first = table().at("trials").at(0);
  fs::remove_all(folder_ / "sweeps/s");
  fs::create_directories(folder_ / run_dir(first));
  write("theirs", "foreign");
  fs::create_symlink(folder_ / "foreign", folder_ / (run_dir(first) + "/output.txt"));
  const Outcome swept = run("sweep s.lua");
  EXPECT_CONTAINS(swept.output, "expected a file, got a link, which is not followed here");
  EXPECT_EQ(read("foreign"), "theirs");
}

TEST_F(SweepTest, ATrialThatCouldNotSaveWhenItWasStoppedIsNamed) {
  write(sweep(kChoices), "s.lua");
  setenv("TYCHO_STEP_MS", "250", 1);
  setenv("TYCHO_FULL_AT_STOP", "1", 1);
  const pid_t worker = start({"sweep", "s.lua", "--workers", "1"});
  ASSERT_TRUE(wait_for([&] { return has_trained(); }));
  kill(worker, SIGINT);
  EXPECT_EQ(finish(worker), 130);
  unsetenv("TYCHO_STEP_MS");
  unsetenv("TYCHO_FULL_AT_STOP");
  EXPECT_CONTAINS(read("log"),
                  "stopped; not saved when it ended, and back at its last checkpoint: trial 1 ([files] ");
  EXPECT_CONTAINS(read("log"),
                  "No space left on device; retry 1 of 2); other trials were saved and put back");
  EXPECT_EQ(read("log").find("stopped; trials were saved"), std::string::npos) << read("log");
}

TEST_F(SweepTest, CtrlCSavesTheTrialsAndSaysHowToContinue) {
  write(sweep(kChoices), "s.lua");
  setenv("TYCHO_STEP_MS", "250", 1);  // of 20 steps: the signal comes long before the last
  const pid_t worker = start({"sweep", "s.lua", "--workers", "2"});
  ASSERT_TRUE(wait_for([&] { return has_trained(); }));
  kill(worker, SIGINT);
  EXPECT_EQ(finish(worker), 130);
  unsetenv("TYCHO_STEP_MS");
  EXPECT_CONTAINS(read("log"), "`tycho sweep resume s` continues");
  EXPECT_TRUE(states(table()).contains("paused"));
  EXPECT_EQ(run("sweep resume s").code, 0);
  EXPECT_EQ(states(table()), std::set<std::string>{"finished"});
  const Json shown = table();
  for (const Json& trial : shown.at("trials")) {
    const std::string steps = read(run_dir(trial) + "/steps.txt");
    EXPECT_EQ(std::count(steps.begin(), steps.end(), '\n'), 20) << "no step twice";
  }
}

TEST_F(SweepTest, EveryStopSignalSavesTheTrials) {
  setenv("TYCHO_STEP_MS", "250", 1);
  for (const auto& [number, code] : {std::pair{SIGUSR2, 140}, {SIGHUP, 129}, {SIGXCPU, 152}}) {
    write(sweep(kChoices), "s.lua");
    fs::remove_all(folder_ / "sweeps");
    const pid_t worker = start({"sweep", "s.lua"});
    EXPECT_TRUE(wait_for([&] { return read("sweeps/s/ledger.jsonl").find("running") != std::string::npos; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    kill(worker, number);
    EXPECT_EQ(finish(worker), code);
    EXPECT_EQ(states(table()), (std::set<std::string>{"paused", "planned"}));
  }
  unsetenv("TYCHO_STEP_MS");
}

TEST_F(SweepTest, NoTrialOfAKilledWorkerIsShownAsRunning) {
  write(sweep(kChoices), "s.lua");
  setenv("TYCHO_STEP_MS", "250", 1);
  const pid_t worker = start({"sweep", "s.lua"});
  ASSERT_TRUE(wait_for([&] { return read("sweeps/s/ledger.jsonl").find("running") != std::string::npos; }));
  EXPECT_TRUE(states(table()).contains("running"));
  kill(worker, SIGKILL);
  finish(worker);
  unsetenv("TYCHO_STEP_MS");
  const std::string ledger = read("sweeps/s/ledger.jsonl");
  EXPECT_EQ(states(table()), (std::set<std::string>{"lost", "planned"}));
  EXPECT_CONTAINS(run("sweep table s").output, "its worker on");
  EXPECT_EQ(run("sweep table s").output.find("running"), std::string::npos);
  EXPECT_EQ(read("sweeps/s/ledger.jsonl"), ledger) << "a look writes nothing";
  EXPECT_CONTAINS(run("sweep drop s 1").output, "1 trial dropped");
  EXPECT_EQ(run("sweep resume s").code, 0);
  EXPECT_EQ(states(table()), (std::set<std::string>{"dropped", "finished"}));
}

/// Processes of `tycho run` below our folder, by their command lines.
std::vector<pid_t> trial_processes(const fs::path& folder) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    // A process may end between here and the read: getline() takes that as the end, an iterator throws.
    std::ifstream file(entry.path() / "cmdline");
    for (std::string argument; std::getline(file, argument, '\0');)
      if (argument.find("run_dir=" + folder.string()) == 0) found.push_back(std::stoi(name));
  }
  return found;
}

TEST_F(SweepTest, KillingAnyWorkerOrTrialAtAnyTimeLosesAtMostItsStep) {
  write(
      sweep(
          "s.space[\"optimizer.lr\"] = t.space.log(1e-4, 1e-2)\ns.search = t.search.random { trials = 5 }\n"),
      "s.lua");
  ASSERT_EQ(run("sweep plan s.lua").code, 0);
  setenv("TYCHO_STEP_MS", "5", 1);
  std::vector<pid_t> workers = {start({"sweep", "s.lua"}), start({"sweep", "s.lua"})};
  for (int i = 0; i < 8; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(60 + 37 * i % 90));
    if (i % 2 == 0) {
      pid_t& victim = workers[static_cast<size_t>(i / 2 % 2)];
      kill(victim, SIGKILL);
      finish(victim);
      victim = start({"sweep", "s.lua"});
    } else {
      const std::vector<pid_t> trials = trial_processes(folder_);
      if (!trials.empty()) kill(trials.front(), SIGKILL);
    }
  }
  for (const pid_t worker : workers) EXPECT_EQ(finish(worker), 0) << read("log");
  unsetenv("TYCHO_STEP_MS");
  const Json trials = table().at("trials");
  ASSERT_EQ(trials.size(), 5u);
  for (const Json& trial : trials) {
    EXPECT_EQ(trial.at("state"), "finished") << trial.dump() << read("log");
    EXPECT_EQ(trial.at("step"), 20);
    // A step that was killed before it was saved is done again, and only that.
    std::ifstream steps(folder_ / run_dir(trial) / "steps.txt");
    int64_t last = 0;
    for (int64_t step = 0; steps >> step; last = step)
      EXPECT_TRUE(step == last + 1 || step == last) << step << " after " << last;
  }
}

}  // namespace
}  // namespace tycho
