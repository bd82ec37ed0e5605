// tycho launch as people start it, with an engine that only shows what it is handed.
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "tests/host/shell.h"

namespace tycho {
namespace {

class LaunchTest : public ShellTest {
 protected:
  void SetUp() override {
    ShellTest::SetUp();
    install(TYCHO_FAKE_ENGINE);
    write(whole("r.global_batch = \"48sp\"\n"));
  }
  Outcome launch(const std::string& arguments, const std::string& before = "") const {
    return here(before + " ./bin/tycho launch " + arguments);
  }
};

TEST_F(LaunchTest, RunsOneRecipeOnSeveralRanks) {
  const Outcome run = launch("-n 3 run x.lua seed=5 --plain");
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_CONTAINS(run.output, "\nrank 0 of 3\n");
  EXPECT_CONTAINS(run.output, "[rank 1] rank 1 of 3\n");
  EXPECT_CONTAINS(run.output, "[rank 2] rank 2 of 3\n");
  EXPECT_CONTAINS(run.output, "pins=1 sources=1 argv=--plain tty=0\n");
  EXPECT_CONTAINS(launch("--ranks=1 run x.lua").output, "\nrank 0 of 1\n");
}

TEST_F(LaunchTest, ARecipeThatDoesNotFitTheRanksIsReportedOnceBeforeTheyStart) {
  write(whole("r.global_batch = \"4sp\"\n"));
  const Outcome run = launch("-n 3 run x.lua");
  EXPECT_EQ(run.code, 11) << run.output;
  EXPECT_CONTAINS(run.output, "1 problem; nothing was started.");
  EXPECT_CONTAINS(run.output, "| ");
  EXPECT_CONTAINS(run.output, "^^");
  EXPECT_EQ(run.output.find("rank 1"), std::string::npos) << run.output;
  const Outcome mesh = launch("-n 2 run x.lua parallel.tp=4");
  EXPECT_EQ(mesh.code, 11) << mesh.output;
  EXPECT_CONTAINS(mesh.output, "argument ");
  EXPECT_CONTAINS(mesh.output, "parallel.tp=4\n");
  EXPECT_EQ(mesh.output.find("rank 1"), std::string::npos) << mesh.output;
  EXPECT_EQ(launch("-n 4 run x.lua").code, 0);
}

// Row 15 of issue 30; the engine of these tests opens no data.
TEST_F(LaunchTest, DataOfAnotherLengthIsReportedOnceBeforeRanksStart) {
  ASSERT_EQ(here("PATH=$(dirname " TYCHO_PROGRAM "):$PATH " TYCHO_SOURCE_DIR "/tests/make_tiny_data 32").code,
            0);
  write(whole("r.global_batch = \"2sp\"\nr.model.vocab_size = 384\nr.seq_len = 32\n"));
  EXPECT_EQ(launch("-n 2 run x.lua").code, 0);
  for (const char* keys :
       {"seq_len=16", "seq_len=64", "seq_len=16 train_data.recut=true 'eval_data.val=mds{local_dir=data}'"}) {
    const Outcome run = launch(std::string("-n 2 run x.lua ") + keys);
    EXPECT_EQ(run.code, 12) << run.output;
    EXPECT_CONTAINS(run.output, "sample 0 of ");
    EXPECT_EQ(run.output.find("sample 0 of"), run.output.rfind("sample 0 of")) << run.output;
    EXPECT_CONTAINS(run.output, "1 problem; nothing was started.");
    EXPECT_CONTAINS(run.output, "^^");
    EXPECT_EQ(run.output.find("rank 1"), std::string::npos) << run.output;
  }
}

TEST_F(LaunchTest, SeveralMachinesNumberTheirRanksOneAfterTheOther) {
  const std::string where =
      "RANK=1 WORLD_SIZE=3 MASTER_ADDR=node-a MASTER_PORT=29500 TYCHO_TOKEN=0123456789abcdef";
  const Outcome run = launch("-n 2 --nodes 3 --node 1 run x.lua", where);
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_CONTAINS(run.output, "[rank 2] rank 2 of 6\n");
  EXPECT_CONTAINS(run.output, "[rank 3] rank 3 of 6\n");
  EXPECT_EQ(run.output.find("rank 0 of"), std::string::npos) << run.output;
}

TEST_F(LaunchTest, SeveralMachinesNeedAPlaceToMeetAndASecret) {
  const std::string token = "TYCHO_TOKEN=0123456789abcdef ", address = "MASTER_ADDR=a ",
                    port = "TYCHO_PORT=29500 ";
  const auto refused = [&](const std::string& environment, const std::string& text, int code,
                           const std::string& node = "0") {
    const Outcome run = launch("-n 2 --nodes 2 --node " + node + " run x.lua", environment);
    EXPECT_EQ(run.code, code) << run.output;
    EXPECT_CONTAINS(run.output, text);
    EXPECT_EQ(run.output.find("[rank "), std::string::npos) << run.output;
  };
  refused(token + port, "--nodes 2 needs TYCHO_ADDRESS or MASTER_ADDR", 11);
  refused(token + address, "--nodes 2 needs TYCHO_PORT or MASTER_PORT", 11);
  refused(address + port, "--nodes 2 needs TYCHO_TOKEN", 11);
  refused(address + port + "TYCHO_TOKEN=short", "a secret of 16 or more characters, got 5", 11);
  refused(address + token + "TYCHO_PORT=many", "TYCHO_PORT expected a whole number", 11);
  refused(token + address + port, "--node expected a number from 0 to 1 (--nodes 2), got 2", 2, "2");
}

TEST_F(LaunchTest, TheExitCodeIsThatOfARankThatFailed) {
  const Outcome run = launch("-n 2 run x.lua seed=99 resume=none");
  EXPECT_EQ(run.code, 15);
  EXPECT_CONTAINS(run.output, "[fake] full\n");
}

TEST_F(LaunchTest, WhatIsWrongIsSaidOnce) {
  const auto said = [](const Outcome& outcome, const std::string& text) {
    EXPECT_CONTAINS(outcome.output, text);
    EXPECT_EQ(outcome.output.find(text), outcome.output.rfind(text)) << outcome.output;
    EXPECT_EQ(outcome.output.find("[rank"), std::string::npos) << outcome.output;
    return outcome.code;
  };
  EXPECT_EQ(said(launch("-n 4 run x.lua sed=1"), "unknown key"), 10);
  EXPECT_EQ(said(launch("-n 4 run x.lua --plian"), "no option --plian"), 2);
  EXPECT_EQ(said(launch("-n 4 run x.lua --on-error repl"), "--on-error repl needs a terminal"), 2);
  EXPECT_EQ(said(launch("-n 4 run x.lua --on-error ask"), "--on-error must be stop or repl, got ask"), 2);
  EXPECT_EQ(said(launch("-n 4 check x.lua"),
                 "expected run, rerun, repl, plan --probe or bench comm after the options, got \"check\""),
            2);
  EXPECT_EQ(said(launch("-n 4"), "expected a command for every rank"), 2);
  EXPECT_EQ(said(launch("run x.lua"), "expected --ranks"), 2);
  EXPECT_EQ(said(launch("-n 0 run x.lua"), "--ranks expected a whole number from 1 to 1024"), 2);
  EXPECT_EQ(said(launch("--plain -n 2 run x.lua"), "no option --plain"), 2);
}

TEST_F(LaunchTest, HelpIsThatOfTheVerbBeforeIt) {
  EXPECT_CONTAINS(launch("-n 2 --help").output, "tycho launch -n N run RECIPE");
  EXPECT_CONTAINS(launch("-n 2 run --help").output, "tycho run RECIPE");
}

TEST_F(LaunchTest, ARankStartsNoRanks) {
  const std::string slurm =
      "SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 SLURM_NODEID=0 SLURM_LOCALID=1 "
      "SLURM_STEP_TASKS_PER_NODE=2 SLURM_STEP_NODELIST=here";
  const Outcome refused = launch("-n 2 run x.lua", slurm);
  EXPECT_EQ(refused.code, 11);
  EXPECT_CONTAINS(refused.output, "this process is already rank 1 of 2 by Slurm");
  EXPECT_EQ(launch("-n 2 run x.lua", slurm + " TYCHO_NUM_RANKS=1").code, 0);
}

TEST_F(LaunchTest, RanksOfARerunAreGivenTheirFolder) {
  ASSERT_EQ(here("TYCHO_FAKE_RUN_FOLDER=1 ./bin/tycho run x.lua").code, 0);
  const Outcome refused = launch("-n 2 rerun runs/x");
  EXPECT_EQ(refused.code, 2);
  EXPECT_CONTAINS(refused.output, "2 ranks need run_name=NAME or run_dir=FOLDER");
  EXPECT_EQ(refused.output.find("rank 1"), std::string::npos) << refused.output;
  const Outcome again = launch("-n 2 rerun runs/x run_name=y");
  EXPECT_EQ(again.code, 0) << again.output;
  EXPECT_CONTAINS(again.output, "\"run_name\":\"y\"");
  EXPECT_CONTAINS(again.output, "[rank 1] rank 1 of 2\n");
}

TEST_F(LaunchTest, WhatIsWrongWithARerunIsReportedOnceBeforeRanksStart) {
  ASSERT_EQ(here("TYCHO_FAKE_RUN_FOLDER=1 ./bin/tycho run x.lua").code, 0);
  const auto refused = [&](const std::string& command, int code, const std::string& text) {
    const Outcome run = launch(command);
    EXPECT_EQ(run.code, code) << run.output;
    EXPECT_CONTAINS(run.output, text);
    EXPECT_EQ(run.output.find(text), run.output.rfind(text)) << run.output;
    EXPECT_EQ(run.output.find("rank 1"), std::string::npos) << run.output;
  };
  refused("-n 2 rerun runs/x run_name=y sed=1", 10, "unknown key");
  refused("-n 5 rerun runs/x run_name=y", 11, "cannot be divided evenly among 5 ranks");
  refused("-n 2 rerun bin run_name=y", 2, "bin is not a run folder");
}

/// A launcher of two ranks at a terminal of its own.
class LaunchAtTerminalTest : public LaunchTest {
 protected:
  void TearDown() override {
    if (terminal_ >= 0) close(terminal_);
    LaunchTest::TearDown();
  }
  /// False where there are no terminals. `last_step_ms`: what a rank still does after it was asked to stop.
  bool start(const char* last_step_ms) {
    child_ = forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (child_ == 0) {
      if (chdir(folder_.c_str()) != 0) _exit(97);
      setenv("TYCHO_FAKE_LAST_STEP_MS", last_step_ms, 1);
      execl("./bin/tycho", "tycho", "launch", "-n", "2", "run", "x.lua", "seed=99", "--plain", nullptr);
      _exit(98);
    }
    if (child_ < 0) return false;
    read_until("[rank 1] OMP_NUM_THREADS");
    read_until("\nOMP_NUM_THREADS");
    return true;
  }
  void press_ctrl_c() const { ASSERT_EQ(::write(terminal_, "\x03", 1), 1); }
  void read_until(const char* text) {
    char c = 0;
    while (seen_.find(text) == std::string::npos && ::read(terminal_, &c, 1) == 1) seen_ += c;
  }
  int finish() {
    char c = 0;
    while (::read(terminal_, &c, 1) == 1) seen_ += c;
    int status = 0;
    waitpid(child_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  int terminal_ = -1;
  pid_t child_ = -1;
  std::string seen_;
};

constexpr const char* kNoTerminals = "this machine has no pseudo terminals (is /dev/pts mounted?)";

TEST_F(LaunchAtTerminalTest, CtrlCReachesEveryRankOnce) {
  if (!start("100")) GTEST_SKIP() << kNoTerminals;
  press_ctrl_c();
  EXPECT_EQ(finish(), 130);
  EXPECT_CONTAINS(seen_, "saving after this step, then stopping");
  EXPECT_EQ(seen_.find("interrupted twice"), std::string::npos) << seen_;
  EXPECT_EQ(seen_.find("[launch]"), std::string::npos) << seen_;
}

TEST_F(LaunchAtTerminalTest, CtrlCTwiceEndsAllAtOnce) {
  if (!start("60000")) GTEST_SKIP() << kNoTerminals;
  press_ctrl_c();
  read_until("again within 2 s ends at once");
  press_ctrl_c();
  EXPECT_EQ(finish(), 130);
  EXPECT_CONTAINS(seen_, "interrupted twice");
}

}  // namespace
}  // namespace tycho
