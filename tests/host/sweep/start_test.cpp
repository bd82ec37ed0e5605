// Reading sweeps: what is refused and how it is said, plans, arguments, and changing a sweep on its way.
#include "tests/host/sweep/sweep_fixture.h"

namespace tycho {
namespace {

TEST_F(SweepTest, AnUnknownKeyOfTheRecipeIsNamedAtItsLine) {
  write(sweep("s.space[\"optimizer.lrr\"] = t.space.log(1e-4, 1e-2)\n"), "s.lua");
  const Outcome planned = run("sweep plan s.lua");
  EXPECT_EQ(planned.code, 10);
  EXPECT_CONTAINS(planned.output, "s.lua:6");
  EXPECT_CONTAINS(planned.output, "unknown key  optimizer.lrr");
  EXPECT_CONTAINS(planned.output, "did you mean  optimizer.lr");
}

TEST_F(SweepTest, EveryMistakeOfASweepIsSaidWithWhatToWrite) {
  const std::pair<const char*, const char*> kWrong[] = {
      {"s.metrik = 1\n", "did you mean  metric"},
      {"s.metric.goal = \"least\"\n", "one of  \"min\"  \"max\""},
      {"s.space[\"optimizer.lr\"] = t.space.log(1e-2, 1e-4)\n", "expects the lower number first"},
      {"s.space[\"optimizer.lr\"] = t.space.log(-1, 1)\n", "number > 0"},
      {"s.space[\"optimizer.lr\"] = t.space.choice {}\n", "t.space.choice expects a list"},
      {"s.space[\"optimizer.lr\"] = t.space.choice { \"fast\" }\n", "number > 0"},
      {"s.space[\"optimizer.lr\"] = t.space.lgo(1, 2)\n", "did you mean  log"},
      {"s.space.x = t.space.zip { [\"model.width\"] = { 1, 2 }, [\"model.heads\"] = { 1 } }\n",
       "lists of the same length"},
      {"", "there are no trials: no key has several values"},
      {"s.space[\"model.layers\"] = t.space.log(1, 8)\n", "write  t.space.int(1, 8)"},
      {"s.space[\"model.width\"] = t.space.int(64, 128)\n", "write  t.space.int(64, 128, 8)"},
      {"s.space[\"optimizer.lr\"] = t.space.log(1e-4, 1e-2)\ns.search = t.search.grid()\n",
       "t.search.grid { [\"optimizer.lr\"] = 5 }"},
      {"s.space[\"optimizer.lr\"] = t.space.log(1e-4, 1e-2)\ns:skip(function(p) return true end)\n",
       "excludes every point"},
      {"s.space[\"optimizer.lr\"] = t.space.log(1e-4, 1e-2)\ns:skip(function(p) return p.lr > 1 end)\n",
       "lr is not in the space"},
      {"s.space[\"optimizer.lr\"] = t.space.when({ seed = \"3\" }, t.space.log(1e-4, 1e-2))\n",
       "names a key that is not in the space"},
      {"s.search = t.search.asha { trials = 4 }\ns.space[\"optimizer.lr\"] = t.space.log(1e-4, 1e-2)\n",
       "rungs is required"},
      {"s.metric.name = \"eval.loss\"\ns.space[\"optimizer.lr\"] = t.space.log(1e-4, 1e-2)\n",
       "metric.name is eval.loss, but recipe.lua has no evaluation"},
      {"s.metric.name = \"eval.c5.loss\"\ns.pins[\"eval_data.c4\"] = \"mds{local_dir=d}\"\n"
       "s.space[\"optimizer.lr\"] = t.space.log(1e-4, 1e-2)\n",
       "metric.name is eval.c5.loss, which is not a metric of recipe.lua; available: eval.loss, "
       "eval.perplexity, eval.c4.loss, eval.c4.perplexity; did you mean \"eval.c4.loss\""},
      {"s.metric.name = \"loss\"\ns.stop.flat = t.stop.patience { metric = \"eval.c4.loss\" }\n"
       "s.space[\"optimizer.lr\"] = t.space.log(1e-4, 1e-2)\n",
       "stop.flat.metric is eval.c4.loss, but recipe.lua has no evaluation"},
      {"s.pins[\"train_data.local_dir\"] = t.secret \"PATH\"\n"
       "s.space[\"optimizer.lr\"] = t.space.log(1e-4, 1e-2)\n",
       "holds a secret of the environment"},
      {"local r = t.recipe \"x\"\n", "this file is read as a sweep"},
      {"local x = t.arg(\"method\")\n", "the argument method is missing"},
      {"local x = t.slurm.rank\n", "all ranks read one recipe"}};
  for (const auto& [lines, said] : kWrong) {
    write(sweep(lines), "s.lua");
    const Outcome planned = run("sweep plan s.lua");
    EXPECT_EQ(planned.code, 10) << lines << planned.output;
    EXPECT_CONTAINS(planned.output, said);
  }
}

TEST_F(SweepTest, PrintShowsTheCommandOfEachTrialAndStartsNothing) {
  write(sweep("s.space[\"optimizer.lr\"] = t.space.choice { 1e-3, 2e-3 }\ns.search = t.search.grid()\n"
              "s.pins.seed = \"3\"\n"),
        "s.lua");
  for (const char* how : {"sweep s.lua --print", "sweep s.lua --workers 1 --print"}) {
    const Outcome printed = run(how);
    ASSERT_EQ(printed.code, 0) << printed.output;
    std::istringstream lines(printed.output);
    std::string first, second, more;
    std::getline(lines, first), std::getline(lines, second);
    EXPECT_FALSE(std::getline(lines, more)) << printed.output;
    EXPECT_TRUE(
        first.starts_with("tycho run recipe.lua seed=3 optimizer.lr=0.001 run_name=s-1 "
                          "run_dir=sweeps/s/trials/0001-"))
        << first;
    EXPECT_CONTAINS(second, "optimizer.lr=0.002 run_name=s-2 ");
    EXPECT_FALSE(std::filesystem::exists(folder_ / "sweeps"));
  }
  ASSERT_EQ(run("sweep s.lua --workers 1").code, 0);
  EXPECT_EQ(run("sweep resume s --print").output, "");
  ASSERT_EQ(run("sweep retry s 2").code, 0);
  const Outcome open = run("sweep resume s --print");
  EXPECT_CONTAINS(open.output, "optimizer.lr=0.002 run_name=s-2 ");
  EXPECT_EQ(open.output.find("optimizer.lr=0.001"), std::string::npos);
  EXPECT_NE(states(table()), std::set<std::string>{"finished"}) << "the trial still waits to be retried";
}

TEST_F(SweepTest, ThePlanShowsTrialsRungsAndWhatTheyTake) {
  write(sweep("s.space[\"optimizer.lr\"] = t.space.log(1e-4, 1e-2)\n"
              "s.search = t.search.asha { trials = 27, rungs = { \"2ba\", \"6ba\", \"18ba\" } }\n"),
        "s.lua");
  const Outcome planned = run("sweep plan s.lua");
  EXPECT_EQ(planned.code, 0) << planned.output;
  EXPECT_CONTAINS(planned.output, "sweep s of recipe.lua: 27 trials");
  EXPECT_CONTAINS(planned.output, "rung 1  to      6ba  about 9 trials");
  EXPECT_CONTAINS(planned.output, "FLOP");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "sweeps"));
  EXPECT_EQ(run("sweep s.lua --dry-run").output, planned.output);
}

TEST_F(SweepTest, PointsAreTheSameEveryTimeAndArgumentsChooseAmongMethods) {
  write(sweep("s.space[\"optimizer.lr\"] = t.space.log(1e-4, 1e-2)\n"
              "s.space.seed = t.space.int(1, 1000)\n"
              "s.space[\"optimizer.eps\"] = t.space.normal(1e-5, 1e-7)\n"
              "local n = t.arg(\"count\", 3)\ns.search = t.search.random { trials = n, seed = 4 }\n"),
        "s.lua");
  const Outcome once = run("sweep plan s.lua"), again = run("sweep plan s.lua"),
                more = run("sweep plan s.lua count=5");
  EXPECT_EQ(once.code, 0) << once.output;
  EXPECT_EQ(once.output, again.output);
  EXPECT_CONTAINS(more.output, "5 trials");
  EXPECT_CONTAINS(more.output, once.output.substr(once.output.find("\n1 ") + 1, 20))
      << "the first points stay";
  const Outcome wrong = run("sweep plan s.lua cuont=5");
  EXPECT_EQ(wrong.code, 10);
  EXPECT_CONTAINS(wrong.output, "unknown key  cuont");
  EXPECT_CONTAINS(run("sweep plan s.lua search.seed=5").output, "3 trials");
}

TEST_F(SweepTest, ConditionsPairsAndSkipsShapeTheGrid) {
  write(sweep("s.space.optimizer = t.space.choice { \"adamw{lr=1e-3}\", \"lion{lr=1e-4}\" }\n"
              "s.space[\"optimizer.weight_decay\"] = t.space.when({ optimizer = \"lion{lr=1e-4}\" }, "
              "t.space.choice { 0, 0.1 })\n"
              "s.space.size = t.space.zip { [\"model.width\"] = { 64, 128 }, [\"model.heads\"] = { 4, 8 } }\n"
              "s:skip(function(p) return p[\"model.width\"] == 128 and p[\"optimizer.weight_decay\"] == 0.1 "
              "end)\n"
              "s.search = t.search.grid()\n"),
        "s.lua");
  const Outcome planned = run("sweep plan s.lua");
  EXPECT_EQ(planned.code, 0) << planned.output;
  EXPECT_CONTAINS(planned.output, "5 trials");  // 2 sizes x (adamw, lion 0, lion 0.1) but one
}

TEST_F(SweepTest, ARecipeAndArgumentsMakeASweepToo) {
  const Outcome swept =
      run("sweep recipe.lua 'optimizer.lr=log(1e-4,1e-2)' model.width=64,128 max_duration=5ba "
          "metric.name=loss -n 4 --name cli");
  ASSERT_EQ(swept.code, 0) << swept.output;
  const Json shown = table("cli");
  EXPECT_EQ(shown.at("trials").size(), 4u);
  EXPECT_EQ(states(shown), std::set<std::string>{"finished"});
  EXPECT_EQ(shown.at("trials")[0].at("step"), 5);
  const Outcome wrong = run("sweep recipe.lua 'optimizer.lrr=log(1e-4,1e-2)'");
  EXPECT_EQ(wrong.code, 10);
  EXPECT_CONTAINS(wrong.output, "optimizer.lrr");
}

TEST_F(SweepTest, ASweepIsExtendedAndChangedOnItsWay) {
  write(
      sweep(
          "s.space[\"optimizer.lr\"] = t.space.log(1e-4, 1e-2)\ns.search = t.search.random { trials = 2 }\n"),
      "s.lua");
  ASSERT_EQ(run("sweep s.lua").code, 0);
  const Outcome extended = run("sweep extend s trials=5");
  EXPECT_EQ(extended.code, 0) << extended.output;
  EXPECT_CONTAINS(extended.output, "3 new trials");
  EXPECT_EQ(run("sweep set s report.sort=optimizer.lr").code, 0);
  EXPECT_EQ(table().at("trials").size(), 5u);
  EXPECT_EQ(run("sweep resume s").code, 0);
  EXPECT_EQ(states(table()), std::set<std::string>{"finished"});
  EXPECT_EQ(run("sweep pause s").code, 0);
  EXPECT_EQ(run("sweep set s nothing.at.all=1").code, 10);
  const Outcome unknown = run("sweep set s stop.flat.evals=6");
  EXPECT_EQ(unknown.code, 10);
  EXPECT_EQ(unknown.output,
            "argument 3  stop.flat.evals=6: stop.flat is not set in this sweep\n"
            "     | stop.flat.evals=6\n"
            "     | ^^^^^^^^^^^^^^^ add a complete one with  'stop.flat=patience{evals=6}'\n"
            "1 problem; nothing was started. docs/sweeps.md has the keys of a sweep.\n");
}

TEST_F(SweepTest, UnknownNamesAreReportedWithTheKnownOnes) {
  write(sweep("s.space[\"optimizer.lr\"] = t.space.choice { 1e-3 }\ns.search = t.search.grid()\n"), "s.lua");
  ASSERT_EQ(run("sweep s.lua --name first").code, 0);
  EXPECT_CONTAINS(run("sweep table frist").output, "did you mean \"first\"");
  EXPECT_CONTAINS(run("sweep table frist").output, "`tycho sweep ls` lists them");
  EXPECT_CONTAINS(run("sweep ls").output, "first");
  EXPECT_CONTAINS(run("sweep ls --json").output, "\"folder\": \"sweeps/first\"");
  EXPECT_CONTAINS(run("sweep tabel first").output, "did you mean \"table\"");
  EXPECT_CONTAINS(run("sweep drop first 9").output, "trials are 1 to 1");
  EXPECT_EQ(run("sweep").code, 2);
}

TEST_F(SweepTest, TheShippedSweepsPass) {
  for (const auto& entry : std::filesystem::directory_iterator(TYCHO_SOURCE_DIR "/recipes/sweeps")) {
    const Outcome planned = shell("cd " TYCHO_SOURCE_DIR " && tycho sweep plan " + entry.path().string());
    EXPECT_EQ(planned.code, 0) << entry.path() << planned.output;
  }
}

TEST_F(SweepTest, FilesOfSweepsAndRecipesAreToldApart) {
  write(sweep("s.space[\"optimizer.lr\"] = t.space.choice { 1e-3 }\n"), "s.lua");
  EXPECT_CONTAINS(run("run s.lua").output, "tycho sweep s.lua");
}

}  // namespace
}  // namespace tycho
