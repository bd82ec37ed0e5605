// tycho plan --schedule as people type it.
#include "tests/host/shell.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

class PlanScheduleTest : public ShellTest {
 protected:
  void SetUp() override {
    ShellTest::SetUp();
    install(TYCHO_FAKE_ENGINE);
    write(whole());
  }
  Outcome plan(const std::string& arguments) const { return here("./bin/tycho plan x.lua " + arguments); }
};

TEST_F(PlanScheduleTest, DrawsWhatIsAskedForBelowThePlan) {
  const Outcome outcome = plan("--schedule=1f1b:2x3");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_CONTAINS(outcome.output,
                  "pipeline: 1f1b, 2 stages, 3 micro-batches\n"
                  "  stage 0  0 1 . . 0== 2 1== . 2==\n"
                  "  stage 1  . 0 0== 1 1== 2 2== . .\n");
  EXPECT_CONTAINS(outcome.output, "\n  . no work, 25.0 % of the time\n");
}

TEST_F(PlanScheduleTest, TakesTheMicroBatchesOfTheRecipe) {
  const Outcome outcome = plan("--schedule=gpipe:2 global_batch=6sp micro_batch=2sp");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "pipeline: gpipe, 2 stages, 3 micro-batches\n");
}

TEST_F(PlanScheduleTest, DrawsThePipelineOfTheRecipe) {
  const std::string stages = "--schedule parallel.pp=2 model.layers=4 micro_batch=2sp ";
  const Outcome outcome = plan(stages + "global_batch=6sp");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "pipeline: 1f1b, 2 stages, 3 micro-batches\n");
  const Json pipeline = Json::parse(plan(stages + "--json --ranks 2 global_batch=6sp").output).at("pipeline");
  EXPECT_EQ(pipeline.at("schedule"), "1f1b");
  EXPECT_EQ(pipeline.at("held_activations"), Json::parse("[2, 1]"));
  const std::string interleaved = "parallel.pp_schedule=interleaved parallel.pp_chunks=2 global_batch=6sp";
  EXPECT_CONTAINS(plan(stages + interleaved).output,
                  "pipeline: interleaved, 2 stages, 3 micro-batches, 2 chunks on each stage\n");
  // Copies of the model share the batch.
  const Json shared =
      Json::parse(plan(stages + "--json --ranks 4 global_batch=16sp parallel.pp_schedule=gpipe").output);
  EXPECT_EQ(shared.at("pipeline").at("schedule"), "gpipe");
  EXPECT_EQ(shared.at("pipeline").at("micro_batches"), 4);
}

TEST_F(PlanScheduleTest, SaysThatARecipeWithoutStagesHasNothingToDraw) {
  const Outcome outcome = plan("--schedule");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "pipeline: parallel.pp is 1, so there is nothing to draw");
  EXPECT_EQ(plan("").output.find("pipeline"), std::string::npos);
}

TEST_F(PlanScheduleTest, GivesItAsJson) {
  const Outcome outcome = plan("--schedule=interleaved:2x2x2 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const Json pipeline = parse_json(outcome.output, "plan").at("pipeline");
  EXPECT_EQ(pipeline.at("schedule"), "interleaved");
  EXPECT_EQ(pipeline.at("chunks"), 2);
  EXPECT_NEAR(pipeline.at("idle_share").get<double>(), 0.2, 1e-12);
  EXPECT_EQ(pipeline.at("held_activations"), Json::parse("[4, 3]"));
  EXPECT_TRUE(parse_json(plan("--schedule --json").output, "plan").at("pipeline").is_null());
}

TEST_F(PlanScheduleTest, RefusesWhatHasNoTable) {
  for (const auto& [given, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {"2f2b:4x8", "such as 1f1b:4x8 or interleaved:4x8x2; got \"2f2b:4x8\""},
           {"1f1b", "got \"1f1b\""},
           {"1f1b:", "got \"1f1b:\""},
           {"1f1b:4x", "got \"1f1b:4x\""},
           {"1f1b:4,8", "got \"1f1b:4,8\""},
           {"1f1b:4x8x1x1", "got \"1f1b:4x8x1x1\""},
           {"1f1b:99999999999x2", "got \"1f1b:99999999999x2\""},
           {"1f1b:0x8", "a pipeline has at least one stage, not 0"},
           {"1f1b:4x-8", "a step has at least one micro-batch, not -8"},
           {"gpipe:4x8x2", "the schedule \"gpipe\" has one chunk on each stage, not 2"},
           {"interleaved:4x8", "at least two chunks on each stage, not 1"},
           {"1f1b:1000000x1000000", "expected at most 1048576 forward passes"}}) {
    const Outcome outcome = plan(std::string("--schedule=") + given);
    EXPECT_EQ(outcome.code, 2) << given;
    EXPECT_CONTAINS(outcome.output, message);
  }
}

}  // namespace
}  // namespace tycho
