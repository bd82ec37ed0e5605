// tycho ctl without a live run: it refuses commands, and plots the metrics that runs recorded.
#include "tests/host/shell.h"
#include "trainer/callbacks/command.h"

namespace tycho {
namespace {

class CtlTest : public ShellTest {
 protected:
  void SetUp() override {
    ShellTest::SetUp();
    for (const char* run : {"a", "b"}) {
      std::filesystem::create_directories(folder_ / "runs" / run);
      std::string records;
      for (int step = 1; step <= 4; ++step)
        records += "{\"attempt\": 1, \"step\": " + std::to_string(step) +
                   ", \"loss\": " + std::to_string(8 - step) +
                   ", \"eval.loss\": " + std::to_string(9 - step) + "}\n";
      write(records, std::string("runs/") + run + "/metrics.jsonl");
    }
  }
};

TEST_F(CtlTest, ATagIsTheNameOfAFolder) {
  const Outcome refused = here("tycho ctl runs/x save a/b");
  EXPECT_EQ(refused.code, 2);
  EXPECT_CONTAINS(refused.output, "[tycho ctl] expected a name without \"/\", got a/b");
}

TEST_F(CtlTest, UnderstandsEveryCommandThatHasASpelling) {
  for (const CommandSpec& spec : all_commands()) {
    const std::string spelling = spec.ctl;
    if (spelling.empty()) continue;
    const std::string name = spelling.ends_with('.') ? "eps" : "";
    const Outcome sent =
        here("tycho ctl runs/a " + spelling + name + (spelling.starts_with("set ") ? "=" : ""));
    EXPECT_CONTAINS(sent.output, "runs/a is not a run folder") << spec.name;
  }
  for (const char* set :
       {"optimizer.lr=1e-3", "clip.norm=1", "optimizer.betas=[0.9,0.95]", "optimizer.nesterov=true"})
    EXPECT_CONTAINS(here(std::string("tycho ctl runs/a set ") + set).output, "runs/a is not a run folder")
        << set;
}

TEST_F(CtlTest, SaysWhatCanBeSet) {
  const auto refusal = [&](const std::string& set) {
    const Outcome refused = here("tycho ctl runs/a set " + set);
    EXPECT_EQ(refused.code, 2) << set;
    return refused.output;
  };
  EXPECT_CONTAINS(refusal("momentum=1"),
                  "set takes lr, betas, weight_decay, optimizer.NAME, clip, log_every; got momentum");
  EXPECT_CONTAINS(refusal("optimizer.=1"), "optimizer.NAME");
  EXPECT_CONTAINS(
      refusal("optimizer.beta"),
      "set optimizer.beta needs a value: set optimizer.beta=..., or optimizer.beta= to restore the recipe's");
  EXPECT_CONTAINS(refusal("lr=fast"), "lr: expected a number, got fast");
  EXPECT_CONTAINS(refusal("loss.epsilon=0.3"), "numbers of a loss are part of its formulas");
}

TEST_F(CtlTest, PlotsSeveralMetricsAndRunsTogether) {
  const Outcome one = here("tycho ctl runs/a plot");
  EXPECT_EQ(one.code, 0);
  EXPECT_TRUE(one.output.starts_with("loss\n")) << one.output;
  const Outcome metrics = here("LC_ALL=C; export LC_ALL; tycho ctl runs/a plot loss eval.loss");
  EXPECT_EQ(metrics.code, 0);
  EXPECT_TRUE(metrics.output.starts_with("o loss  x eval.loss\n")) << metrics.output;
  const Outcome runs = here("LC_ALL=C; export LC_ALL; tycho ctl runs/* plot loss");
  EXPECT_EQ(runs.code, 0);
  EXPECT_TRUE(runs.output.starts_with("loss\no runs/a  x runs/b\n")) << runs.output;
  const Outcome both = here("LC_ALL=C; export LC_ALL; tycho ctl runs/a runs/b plot loss eval.loss");
  EXPECT_TRUE(
      both.output.starts_with("o runs/a loss  x runs/a eval.loss  * runs/b loss  # runs/b eval.loss\n"))
      << both.output;
}

TEST_F(CtlTest, OnlyATerminalThatHasColoursGetsThem) {
  if (here("script -qec true /dev/null < /dev/null").code != 0) GTEST_SKIP() << "no pseudo-terminals here";
  const auto drawn = [&](const std::string& variables, const std::string& metrics) {
    return here(variables + " script -qec \"" TYCHO_PROGRAM " ctl runs/a plot " + metrics +
                "\" /dev/null < /dev/null");
  };
  const std::string escape = "\x1b[", unset = "unset NO_COLOR; TERM=xterm";
  EXPECT_CONTAINS(drawn(unset, "loss eval.loss").output, escape);
  for (const Outcome& plain :
       {drawn("NO_COLOR=1 TERM=xterm", "loss eval.loss"), drawn("TERM=dumb", "loss eval.loss"),
        drawn(unset, "loss"), here("TERM=xterm tycho ctl runs/a plot loss eval.loss")}) {
    EXPECT_EQ(plain.code, 0);
    EXPECT_EQ(plain.output.find(escape), std::string::npos) << plain.output;
  }
}

TEST_F(CtlTest, APlotNamesWhatItCannotDraw) {
  const Outcome missing = here("tycho ctl runs/a runs/b plot loss lss");
  EXPECT_EQ(missing.code, 12);
  EXPECT_CONTAINS(missing.output, "\"lss\" in runs/a/metrics.jsonl");
  EXPECT_EQ(here("tycho ctl runs/a plot loss loss").code, 2);
  const Outcome twice = here("tycho ctl runs/a runs/a plot loss");
  EXPECT_EQ(twice.code, 2);
  EXPECT_CONTAINS(twice.output, "[plot] expected each curve once, got \"runs/a\" twice");
  const Outcome no_run = here("tycho ctl runs/a runs/c plot loss");
  EXPECT_EQ(no_run.code, 2);
  EXPECT_CONTAINS(no_run.output, "[tycho ctl] no \"runs/c\"; available: save, ");
  EXPECT_CONTAINS(no_run.output, "and before plot further folders of runs");
}

TEST_F(CtlTest, OnlyAPlotTakesSeveralRuns) {
  const Outcome refused = here("tycho ctl runs/a runs/b save tag");
  EXPECT_EQ(refused.code, 2);
  EXPECT_CONTAINS(refused.output, "[tycho ctl] save expected one run, got 2: `tycho ctl runs/a save`");
}

}  // namespace
}  // namespace tycho
