// tycho plan --probe as people start it, with an engine whose numbers are known: 64 tokens in 0.25 s.
#include "tests/host/shell.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

class PlanProbeTest : public ShellTest {
 protected:
  void SetUp() override {
    ShellTest::SetUp();
    install(TYCHO_FAKE_ENGINE);
    write(whole());
    std::filesystem::create_directory(folder_ / "tmp");
  }
  /// Ctrl-C reaches it even if whoever started the tests ignores SIGINT, as a shell does for a job in the
  /// background.
  Outcome plan(const std::string& arguments, const std::string& before = "") const {
    return here(before + " TMPDIR=$PWD/tmp TYCHO_FAKE_RUN_FOLDER=1 env --default-signal=INT ./bin/tycho " +
                arguments);
  }
  /// What is there beside the recipe and the program.
  void expect_nothing_left() const {
    EXPECT_TRUE(std::filesystem::is_empty(folder_ / "tmp"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
  }
};

TEST_F(PlanProbeTest, PrintsMeasuredValuesBesidePlannedOnes) {
  const Outcome outcome = plan("plan x.lua --probe --gpu A100 --mfu 0.5");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "probe: 3 steps on nothing\n");
  EXPECT_CONTAINS(outcome.output, "1.57 MB  at the peak, in addition to 524 KB used before\n");
  EXPECT_CONTAINS(outcome.output, "0.25 s  first step 0.25 s\n");
  EXPECT_CONTAINS(outcome.output, " 256  0.00 FLOP/s, peak unknown\n");
  EXPECT_CONTAINS(outcome.output, " 0:00:03  planned at 50.0 % of the peak of 1 A100");
  expect_nothing_left();
}

TEST_F(PlanProbeTest, GivesBothAsJson) {
  const Outcome outcome = plan("plan x.lua --probe --json");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const Json json = parse_json(outcome.output, "plan");
  const Json& probe = json.at("probe");
  EXPECT_EQ(probe.at("num_steps"), 3);
  EXPECT_EQ(probe.at("step_s"), 0.25);
  EXPECT_EQ(probe.at("tokens_per_s"), 256);
  EXPECT_EQ(probe.at("memory_bytes"), (2 << 20) - (1 << 19));
  EXPECT_EQ(probe.at("seconds"), 2.5);
  EXPECT_FALSE(probe.contains("mfu"));
  EXPECT_LT(json.at("training_bytes"), json.at("memory_bytes")) << "a save takes a copy on a CPU";
  expect_nothing_left();
}

TEST_F(PlanProbeTest, ASignalEndsItAndNothingIsLeft) {
  for (const auto& [signal, code] : {std::pair("INT", 130), {"TERM", 143}}) {
    const Outcome outcome =
        plan(std::string("plan x.lua --probe seed=99 >log & pid=$!; for i in $(seq 2400); do "
                         "grep -q waiting log && break; sleep 0.05; done; kill -") +
                 signal + " $pid; wait $pid; exit $?",
             "set -m; export TMPDIR=$PWD/tmp;");
    EXPECT_EQ(outcome.code, code) << outcome.output;
    expect_nothing_left();
  }
}

TEST_F(PlanProbeTest, AKilledProbeIsNamedAndNothingIsLeft) {
  const Outcome outcome = plan("plan x.lua --probe seed=98");
  EXPECT_EQ(outcome.code, 14) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "was killed by SIGKILL: memory may have run out");
  expect_nothing_left();
}

TEST_F(PlanProbeTest, RefusesRanksThatAreNotHere) {
  const Outcome outcome = plan("plan x.lua --probe --ranks 4");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_CONTAINS(outcome.output,
                  "--probe measures the running ranks, 1: leave out --ranks 4, or start that many with tycho "
                  "launch -n 4 plan RECIPE --probe");
  const Outcome unstarted = plan("launch -n 2 plan x.lua");
  EXPECT_EQ(unstarted.code, 2);
  EXPECT_CONTAINS(unstarted.output, "plan starts ranks only to measure them: add --probe");
  const Outcome shared = plan("launch -n 2 plan x.lua --probe global_batch=3sp");
  EXPECT_EQ(shared.code, 11) << shared.output;
  expect_nothing_left();
}

TEST_F(PlanProbeTest, PlansForTheRanksThatTheRecipeAsksFor) {
  const Outcome outcome = plan("plan x.lua parallel.dp_replicate=2 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(parse_json(outcome.output, "plan").at("num_ranks"), 2);
  const Outcome other = plan("plan x.lua parallel.dp_replicate=2 --ranks 4");
  EXPECT_EQ(other.code, 11);
  EXPECT_CONTAINS(other.output, "parallel.dp_replicate: the mesh has 2 ranks, and the run has 4");
}

TEST_F(PlanProbeTest, EstimatesTheSpeedOnNamedMachines) {
  const Outcome outcome = plan("plan x.lua --ranks 16 global_batch=16sp machine=h100 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const Json estimate = parse_json(outcome.output, "plan").at("estimate");
  EXPECT_GT(estimate.at("tokens_per_s"), 0);
  EXPECT_EQ(estimate.at("axes").at(0).at("axis"), "dp_replicate");
  EXPECT_EQ(estimate.at("axes").at(0).at("crosses"), true);
  const Outcome one_node = plan(
      "plan x.lua --ranks 16 global_batch=16sp --ranks-per-node 16 machine=h100 machine.gpus_per_node=16");
  EXPECT_CONTAINS(one_node.output, "all ranks are on one machine");
  const Outcome crowded = plan("plan x.lua --ranks 16 global_batch=16sp --ranks-per-node 16 machine=h100");
  EXPECT_EQ(crowded.code, 2);
  EXPECT_CONTAINS(crowded.output, "has 8 GPUs, and 16 ranks are to be on it");
  EXPECT_CONTAINS(plan("plan x.lua machine=v100").output,
                  "machine.name: expected one of h100, h200, gb200, cpu, custom, got \"v100\"");
}

TEST_F(PlanProbeTest, ProposesAMeshAndPlansForIt) {
  const Outcome outcome = plan("plan x.lua --ranks 8 machine=h100 parallel=auto");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "parallel = \"auto\", 8 ranks\nh100: 8 a node");
  EXPECT_CONTAINS(outcome.output, "\ntaken: dp_replicate 8\n");
  EXPECT_CONTAINS(outcome.output, "\nmesh        dp_replicate 8\n");
  const Outcome node = plan("plan x.lua machine=h100 parallel=auto --json");
  ASSERT_EQ(node.code, 0) << node.output;
  EXPECT_EQ(Json::parse(node.output).at("num_ranks"), 8) << "of one node";
  const Outcome small = plan("plan x.lua --ranks 2 machine=h100 machine.memory=1MiB parallel=auto");
  EXPECT_EQ(small.code, 11);
  EXPECT_CONTAINS(small.output, "expected a mesh that fits into 1.05 MB a rank, and none does");
  const Outcome wrong = plan("plan x.lua parallel=fsdp");
  EXPECT_EQ(wrong.code, 10);
  EXPECT_CONTAINS(wrong.output, "one of  \"given\"  \"auto\"");
}

TEST_F(PlanProbeTest, ARunKeepsTheMeshThatWasChosen) {
  const Outcome first = plan("launch -n 2 run x.lua device=cpu parallel=auto");
  ASSERT_EQ(first.code, 0) << first.output;
  EXPECT_CONTAINS(first.output, "taken: dp_replicate 2\n");
  EXPECT_CONTAINS(first.output, "\"mesh\":\"given\"");
  EXPECT_CONTAINS(first.output, "\"dp_replicate\":2");
  EXPECT_CONTAINS(first.output, "  machine 0  0 | 1\n");
  EXPECT_EQ(first.output.find("\"mesh\":\"auto\""), std::string::npos) << first.output;
  const Outcome saved = here("cat runs/x/recipe.lua; cat runs/x/argv.txt");
  EXPECT_CONTAINS(saved.output, "dp_replicate = 2");
  EXPECT_CONTAINS(saved.output, "parallel.dp_replicate=2");
  const Outcome again = plan("launch -n 2 run x.lua device=cpu parallel=auto");
  EXPECT_CONTAINS(again.output, "mesh: dp_replicate 2, as this run had it before\n");
  const Outcome gpu = plan("run x.lua device=cuda parallel=auto");
  EXPECT_EQ(gpu.code, 10);
  EXPECT_CONTAINS(gpu.output, "parallel = \"auto\" needs to know the machines: set machine = \"h100\"");
}

TEST_F(PlanProbeTest, ChoosesHowRanksThatShareSequencesGetKeysAndValues) {
  const Outcome outcome = plan("plan x.lua --ranks 2 machine=h100 parallel.cp=2 parallel.cp_attention=auto");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "parallel.cp_attention = \"auto\", received per step\n  gather  ");
  EXPECT_CONTAINS(outcome.output, "\ncp_attention, received per step\n  gather  ");
  EXPECT_CONTAINS(outcome.output, ", taken\n");
  const Outcome ring =
      plan("plan x.lua --ranks 2 machine=h100 parallel.cp=2 parallel.cp_attention=ring --json");
  ASSERT_EQ(ring.code, 0) << ring.output;
  const Json forms = Json::parse(ring.output).at("cp_attention");
  EXPECT_EQ(forms.at(1).at("name"), "ring");
  EXPECT_GT(forms.at(1).at("wait_s"), 0);
  EXPECT_EQ(plan("plan x.lua --ranks 2 parallel.cp=2").output.find("waits"), std::string::npos)
      << "no machine";
  const Outcome alone = plan("plan x.lua machine=h100 parallel.cp_attention=auto");
  ASSERT_EQ(alone.code, 0) << alone.output;
  EXPECT_EQ(alone.output.find("received"), std::string::npos) << alone.output;
  const Outcome both =
      plan("plan x.lua --ranks 4 machine=h100 parallel=auto parallel.cp=2 parallel.cp_attention=auto");
  ASSERT_EQ(both.code, 0) << both.output;
  EXPECT_CONTAINS(both.output, "parallel.cp_attention = \"auto\"");
  const Outcome gpu = plan("run x.lua device=cuda parallel.cp_attention=auto parallel.cp=2");
  EXPECT_NE(gpu.code, 0);
  EXPECT_EQ(plan("plan x.lua parallel.cp_attention=ring").code, 10);
}

TEST_F(PlanProbeTest, ARunKeepsHowItGetsKeysAndValues) {
  const std::string arguments = "launch -n 2 run x.lua device=cpu parallel.cp=2 parallel.cp_attention=";
  const Outcome first = plan(arguments + "auto");
  ASSERT_EQ(first.code, 0) << first.output;
  EXPECT_EQ(first.output.find("\"cp_attention\":\"auto\""), std::string::npos) << first.output;
  EXPECT_CONTAINS(here("cat runs/x/argv.txt").output, "parallel.cp_attention=");
  ASSERT_EQ(plan(arguments + "ring").code, 0);
  EXPECT_CONTAINS(plan(arguments + "auto").output, "cp_attention: ring, as this run had it before\n");
}

TEST_F(PlanProbeTest, ChoosesTheLargestMicroBatchThatFits) {
  const Outcome outcome = plan("plan x.lua device=cpu global_batch=12sp micro_batch=auto");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_CONTAINS(outcome.output,
                  "micro_batch = \"auto\": 12 of the 12 sequences of a rank, with which it takes ");
  const Outcome mesh =
      plan("plan x.lua --ranks 4 machine=h100 global_batch=48sp micro_batch=auto parallel=auto");
  ASSERT_EQ(mesh.code, 0) << mesh.output;
  EXPECT_CONTAINS(mesh.output, "     micro_batch 12sp\n");
  EXPECT_CONTAINS(mesh.output, "\nmicro_batch = \"auto\": 12 of the 12 sequences of a rank");
  EXPECT_EQ(plan("check x.lua micro_batch=auto").code, 0);
  const Outcome gpu = plan("run x.lua device=cuda micro_batch=auto");
  EXPECT_EQ(gpu.code, 10);
  EXPECT_CONTAINS(gpu.output, "micro_batch = \"auto\" needs to know the machines: set machine = \"h100\"");
  const Outcome wrong = plan("check x.lua micro_batch=automatic");
  EXPECT_EQ(wrong.code, 10);
  EXPECT_EQ(plan("check x.lua max_duration=auto").code, 10) << "no other duration is chosen";
}

TEST_F(PlanProbeTest, ARunKeepsTheMicroBatchThatWasChosen) {
  const Outcome first = plan("run x.lua device=cpu global_batch=12sp micro_batch=auto");
  ASSERT_EQ(first.code, 0) << first.output;
  EXPECT_CONTAINS(first.output, "\"micro_batch\":\"12sp\"");
  EXPECT_CONTAINS(here("cat runs/x/recipe.lua").output, "micro_batch = \"12sp\"");
  EXPECT_CONTAINS(here("cat runs/x/argv.txt").output, "micro_batch=12sp");
  const Outcome given = plan("run x.lua device=cpu global_batch=12sp micro_batch=3sp");
  ASSERT_EQ(given.code, 0) << given.output;
  const Outcome again = plan("run x.lua device=cpu global_batch=12sp micro_batch=auto");
  EXPECT_CONTAINS(again.output, "micro_batch: 3sp, as this run had it before\n");
}

TEST_F(PlanProbeTest, SaysForWhichMachineNothingFits) {
  const Outcome outcome = plan("plan x.lua device=cpu model.width=1048576 recompute.mode=auto");
  EXPECT_CONTAINS(outcome.output,
                  ": too much, and there is no other\nplanned for this machine, \"cpu\"; name ");
  const Outcome named = plan("plan x.lua model.width=1048576 recompute.mode=auto machine=h100");
  EXPECT_CONTAINS(named.output, ": too much, and there is no other\n");
  EXPECT_EQ(named.output.find("planned for this machine"), std::string::npos);
  // The GPU of --gpu, too, and not the memory of this machine, says what fits.
  const Outcome gpu = plan("plan x.lua micro_batch=auto --gpu \"H100 HBM3\"");
  EXPECT_EQ(gpu.code, 0);
  EXPECT_CONTAINS(gpu.output, " of 84.8 GB\n");
}

TEST_F(PlanProbeTest, ChoosesTheLeastRecomputationThatFitsAndARunKeepsIt) {
  const std::string arguments = " x.lua device=cpu recompute.mode=auto";
  const Outcome outcome = plan("plan" + arguments);
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "recompute.mode = \"auto\": none, with which it takes ");
  const Outcome mesh = plan(
      "plan x.lua --ranks 4 machine=h100 global_batch=48sp micro_batch=auto "
      "recompute.mode=auto parallel=auto");
  ASSERT_EQ(mesh.code, 0) << mesh.output;
  EXPECT_CONTAINS(mesh.output, "     recompute none, micro_batch 12sp\n");
  ASSERT_EQ(plan("run" + arguments).code, 0);
  EXPECT_CONTAINS(here("cat runs/x/argv.txt").output, "recompute.mode=none");
  ASSERT_EQ(plan("run x.lua device=cpu recompute.mode=full").code, 0);
  EXPECT_CONTAINS(plan("run" + arguments).output, "recompute.mode: full, as this run had it before\n");
}

TEST_F(PlanProbeTest, HalvesAChosenMicroBatchThatDoesNotFitAfterAll) {
  const std::string arguments = "run x.lua device=cpu global_batch=12sp micro_batch=auto run_name=";
  const Outcome halved = plan(arguments + "a", "TYCHO_FAKE_MEMORY_SP=4");
  EXPECT_EQ(halved.code, 0) << halved.output;
  EXPECT_CONTAINS(halved.output,
                  "[memory] CUDA out of memory\n"
                  "starting again with micro_batch=6sp instead of micro_batch=12sp\n");
  EXPECT_CONTAINS(halved.output, "starting again with micro_batch=3sp instead of micro_batch=6sp\n");
  EXPECT_CONTAINS(here("cat runs/a/recipe.lua").output, "micro_batch = \"3sp\"");
  EXPECT_CONTAINS(here("cat runs/a/argv.txt").output, "micro_batch=3sp");
  EXPECT_EQ(here("cat runs/a/argv.txt").output.find("micro_batch=12sp"), std::string::npos);
  const Outcome never = plan(arguments + "b", "TYCHO_FAKE_MEMORY_SP=0");
  EXPECT_EQ(never.code, 14);
  EXPECT_CONTAINS(never.output, "with micro_batch=1sp instead of micro_batch=3sp\n");
  const Outcome later = plan(arguments + "c", "TYCHO_FAKE_STEPS=1 TYCHO_FAKE_MEMORY_SP=4");
  EXPECT_EQ(later.code, 14) << "a run that has trained ends";
  EXPECT_EQ(later.output.find("starting again with"), std::string::npos);
  const Outcome given =
      plan("run x.lua device=cpu global_batch=12sp micro_batch=12sp run_name=d", "TYCHO_FAKE_MEMORY_SP=4");
  EXPECT_EQ(given.code, 14) << "what the recipe says is kept";
}

TEST_F(PlanProbeTest, RanksMeasureTogetherAndRankZeroPrints) {
  const Outcome outcome = plan("launch -n 2 plan x.lua --probe");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(outcome.output.find("probe: "), outcome.output.rfind("probe: ")) << outcome.output;
  EXPECT_EQ(outcome.output.find("[rank 1]"), std::string::npos) << outcome.output;
  expect_nothing_left();
}

TEST_F(PlanProbeTest, WithoutAFolderForTemporaryFilesItSaysSo) {
  const Outcome outcome = here("TMPDIR=$PWD/nowhere ./bin/tycho plan x.lua --probe");
  EXPECT_EQ(outcome.code, 15);
  EXPECT_CONTAINS(outcome.output, "set TMPDIR to an existing folder\n");
  EXPECT_EQ(outcome.output.find("probe: "), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace tycho
