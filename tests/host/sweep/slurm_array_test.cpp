// Slurm arrays with an sbatch that only writes down what it was given.
#include "tests/host/sweep/sweep_fixture.h"

namespace tycho {
namespace {

class SlurmArrayTest : public SweepTest {
 protected:
  void SetUp() override {
    SweepTest::SetUp();
    write(
        sweep("s.space[\"optimizer.lr\"] = t.space.choice { 1e-3, 2e-3, 3e-3 }\ns.search = t.search.grid()\n"
              "s.launch = t.launch.slurm_array { gpus = 0, time = \"90m\", max_running = 2, partition = "
              "\"fast\",\n"
              "  options = { \"--exclude=n1\" } }\n"),
        "s.lua");
  }
  void fake_sbatch(const std::string& body) { fake_program("sbatch", body); }
  void fake_program(const std::string& name, const std::string& body) {
    write("#!/bin/sh\n" + body, "bin/" + name);
    std::filesystem::permissions(folder_ / "bin" / name, std::filesystem::perms::owner_all);
  }
  Outcome with_sbatch(const std::string& arguments) const {
    return here("PATH=" + (folder_ / "bin").string() + ":$PATH ./bin/tycho " + arguments);
  }
  /// Runs the script of a task, which gets the signal when a trial runs. `state`: what scontrol says of the
  /// job, and its calls go to the file "asked".
  Outcome stopped_task(const std::string& signal, const std::string& state) {
    fake_sbatch("cp \"$2\" " + (folder_ / "script.sh").string() + "; echo 1\n");
    EXPECT_EQ(with_sbatch("sweep s.lua").code, 0);
    fake_program("scontrol", "echo \"$@\" >> " + (folder_ / "asked").string() + "\necho " + state + "\n");
    return here(
        "export PATH=$PWD/bin:$PATH SLURM_ARRAY_JOB_ID=1 SLURM_ARRAY_TASK_ID=0 TYCHO_STEP_MS=100; bash "
        "script.sh & "
        "until cat sweeps/s/trials/*/metrics.jsonl 2>/dev/null | grep -q step; do sleep 0.05; done; kill -" +
            signal + " $!; wait $!; echo code $?",
        "bash");
  }
};

TEST_F(SlurmArrayTest, PrintsTheScriptAndSubmitsNothing) {
  fake_sbatch("touch submitted\n");
  const Outcome printed = with_sbatch("sweep s.lua --print");
  ASSERT_EQ(printed.code, 0) << printed.output;
  for (const char* line : {"#SBATCH --job-name=s\n", "#SBATCH --array=0-1%2\n", "#SBATCH --time=90\n",
                           "#SBATCH --requeue\n", "#SBATCH --partition=fast\n", "#SBATCH --exclude=n1\n",
                           "#SBATCH --signal=B:USR1@180\n", "trap 'kill -USR1 $worker' USR1\n"})
    EXPECT_CONTAINS(printed.output, line);
  EXPECT_TRUE(printed.output.starts_with("#!/bin/bash\n"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "submitted"));
}

TEST_F(SlurmArrayTest, SubmitsAndTheScriptWorksTheSweepOff) {
  fake_sbatch("cp \"$2\" " + (folder_ / "script.sh").string() + "; echo 4711\n");
  const Outcome submitted = with_sbatch("sweep s.lua");
  ASSERT_EQ(submitted.code, 0) << submitted.output;
  EXPECT_CONTAINS(submitted.output, "submitted as job 4711");
  EXPECT_EQ(states(table()), std::set<std::string>{"planned"});
  const Outcome task = here("bash script.sh & bash script.sh; wait", "bash");
  EXPECT_EQ(states(table()), std::set<std::string>{"finished"}) << task.output;
}

TEST_F(SlurmArrayTest, TheWarningOfTheTimeLimitPutsTrialsBackAndQueuesAgain) {
  const Outcome task = stopped_task("USR1", "JobState=RUNNING Reason=None");
  EXPECT_CONTAINS(task.output, "code 138");
  EXPECT_EQ(read("asked"), "show job 1_0\nrequeue 1_0\n");
  EXPECT_TRUE(states(table()).contains("paused")) << task.output;
}

TEST_F(SlurmArrayTest, ATaskThatIsCancelledPutsTrialsBackAndStaysOutOfTheQueue) {
  const Outcome task = stopped_task("TERM", "JobState=COMPLETING Reason=None");
  EXPECT_CONTAINS(task.output, "code 143");
  EXPECT_EQ(read("asked"), "show job 1_0\n");
  EXPECT_TRUE(states(table()).contains("paused")) << task.output;
}

TEST_F(SlurmArrayTest, ATrialOfSeveralTasksIsAStepWithARankForEach) {
  write(read("s.lua").replace(read("s.lua").find("gpus = 0"), 8, "gpus = 0, nodes = 2"), "s.lua");
  fake_program("srun",
               "echo ranks=$TYCHO_NUM_RANKS \"$2\" >> " + (folder_ / "steps").string() + "\nexec \"$@\"\n");
  const Outcome task = with_sbatch("sweep s.lua --task");
  ASSERT_EQ(task.code, 0) << task.output;
  EXPECT_EQ(read("steps"), "ranks= run\nranks= run\nranks= run\n") << "Slurm says how many ranks there are";
}

TEST_F(SlurmArrayTest, TheScriptIsInTheSweepAndNotWhereOthersWrite) {
  std::filesystem::create_directory(folder_ / "tmp");
  write("foreign", "foreign.sh");
  std::filesystem::create_directories(folder_ / "sweeps/s");
  std::filesystem::create_symlink(folder_ / "foreign.sh", folder_ / "sweeps/s/slurm.sbatch");
  fake_sbatch("echo \"$2\" > " + (folder_ / "path").string() + "; cp \"$2\" " +
              (folder_ / "script.sh").string() + "; echo 7\n");
  const Outcome submitted = here("TMPDIR=$PWD/tmp PATH=$PWD/bin:$PATH ./bin/tycho sweep s.lua");
  ASSERT_EQ(submitted.code, 0) << submitted.output;
  EXPECT_EQ(read("path"), (folder_ / "sweeps/s/slurm.sbatch").string() + "\n");
  EXPECT_EQ(read("script.sh"), read("sweeps/s/slurm.sbatch"));
  EXPECT_TRUE(read("script.sh").starts_with("#!/bin/bash\n#SBATCH --job-name=s\n"));
  EXPECT_EQ(read("foreign.sh"), "foreign");
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "tmp"));
}

TEST_F(SlurmArrayTest, OutputOfSbatchIsPassedOn) {
  fake_sbatch("echo 'sbatch: error: invalid partition' >&2; exit 1\n");
  const Outcome refused = with_sbatch("sweep s.lua");
  EXPECT_EQ(refused.code, 11);
  EXPECT_CONTAINS(refused.output, "[sweep] sbatch failed: sbatch: error: invalid partition; `tycho sweep");
}

TEST_F(SlurmArrayTest, WithoutSbatchItSaysSo) {
  const Outcome absent = here("PATH=/nowhere ./bin/tycho sweep s.lua");
  EXPECT_EQ(absent.code, 11);
  EXPECT_CONTAINS(absent.output, "[sweep] sbatch is not installed here");
}

}  // namespace
}  // namespace tycho
