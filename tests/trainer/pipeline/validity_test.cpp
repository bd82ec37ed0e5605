// Our tables and programs are valid; damaged ones, and those that wait for ever, are found.
#include "tests/trainer/pipeline/validity.h"

#include <gtest/gtest.h>

#include "tests/trainer/pipeline/shapes.h"

namespace tycho {
namespace {

using Kind = PipelineOp::Kind;
using Pass = PipelineAction::Kind;

TEST(PipelineValidity, AllShapesHaveValidTablesAndPrograms) {
  const std::vector<PipelineShape> shapes = many_shapes();
  EXPECT_GT(shapes.size(), 800u);
  for (const PipelineShape& shape : shapes) {
    const PipelineTable table = pipeline_table(shape);
    EXPECT_EQ(table_problem(shape, table), "") << text_of(shape);
    EXPECT_EQ(program_problem(shape, pipeline_programs(shape, table)), "") << text_of(shape);
  }
}

class DamagedTableTest : public testing::Test {
 protected:
  const PipelineShape shape_ = {PipelineSchedule::k1f1b, 2, 3, 1};
  PipelineTable table_ = pipeline_table(shape_);
  std::string problem() const { return table_problem(shape_, table_); }
};

TEST_F(DamagedTableTest, APassIsLeftOut) {
  table_[0].pop_back();
  EXPECT_EQ(problem(), "stage 0 leaves out the backward pass of micro-batch 2");
}
TEST_F(DamagedTableTest, APassIsThereTwice) {
  table_[0].push_back(table_[0].front());
  EXPECT_EQ(problem(), "stage 0, the forward pass of micro-batch 0: it is done twice");
}
TEST_F(DamagedTableTest, APassIsNotOfThisStep) {
  table_[1].push_back({Pass::kForward, 0, 3});
  EXPECT_EQ(problem(), "stage 1, the forward pass of micro-batch 3: there is no such micro-batch");
  table_[1].back() = {Pass::kForward, 1, 0};
  EXPECT_EQ(problem(), "stage 1, the forward pass of micro-batch 0: there is no such chunk");
}
TEST_F(DamagedTableTest, ABackwardPassComesTooEarly) {
  std::swap(table_[1][0], table_[1][1]);
  EXPECT_EQ(problem(), "stage 1, the backward pass of micro-batch 0: its forward pass is not done yet");
}
TEST_F(DamagedTableTest, MicroBatchesAreOutOfOrder) {
  table_[0] = {{Pass::kForward, 0, 1}, {Pass::kForward, 0, 0}};
  EXPECT_EQ(problem(), "stage 0, the forward pass of micro-batch 1: micro-batch 0 comes first");
}
TEST_F(DamagedTableTest, StagesWaitForEachOther) {
  // Stage 0 wants a gradient of micro-batch 0 before it sends micro-batch 1, which stage 1 wants first.
  table_[0] = {{Pass::kForward, 0, 0},  {Pass::kBackward, 0, 0}, {Pass::kForward, 0, 1},
               {Pass::kBackward, 0, 1}, {Pass::kForward, 0, 2},  {Pass::kBackward, 0, 2}};
  EXPECT_EQ(problem(), "");
  table_[1] = {{Pass::kForward, 0, 0},  {Pass::kForward, 0, 1}, {Pass::kBackward, 0, 0},
               {Pass::kBackward, 0, 1}, {Pass::kForward, 0, 2}, {Pass::kBackward, 0, 2}};
  EXPECT_EQ(problem(), "stage 0 waits forever before the backward pass of micro-batch 0");
}
TEST_F(DamagedTableTest, AStageHasNoList) {
  table_.pop_back();
  EXPECT_EQ(problem(), "2 stages have 1 lists");
}
TEST_F(DamagedTableTest, TheShapeItselfIsWrong) {
  EXPECT_EQ(table_problem({PipelineSchedule::k1f1b, 2, 0, 1}, table_),
            "a step has at least one micro-batch, not 0");
}

/// Each stage receives right before a pass and sends right after it.
std::vector<StageProgram> naive_programs(const PipelineShape& shape) {
  std::vector<StageProgram> programs;
  const PipelineTable table = pipeline_table(shape);
  for (int stage = 0; stage < shape.num_stages; ++stage) {
    StageProgram& program = programs.emplace_back();
    for (const PipelineAction& action : table[static_cast<size_t>(stage)]) {
      const bool forward = action.kind == Pass::kForward;
      const int from = stage + (forward ? -1 : 1), to = stage + (forward ? 1 : -1);
      if (from >= 0 && from < shape.num_stages)
        program.push_back(
            {forward ? Kind::kReceiveActivation : Kind::kReceiveGradient, 0, action.micro_batch, from});
      program.push_back({forward ? Kind::kForward : Kind::kBackward, 0, action.micro_batch, -1});
      if (to >= 0 && to < shape.num_stages)
        program.push_back({forward ? Kind::kSendActivation : Kind::kSendGradient, 0, action.micro_batch, to});
    }
  }
  return programs;
}

TEST(PipelineValidity, FindsThatANaiveOrderOfMessagesWaitsForEver) {
  // Stage 0 sends micro-batch 1 while stage 1 sends the gradient of micro-batch 0: neither receives.
  EXPECT_EQ(
      program_problem({PipelineSchedule::k1f1b, 2, 2, 1}, naive_programs({PipelineSchedule::k1f1b, 2, 2, 1})),
      "stage 0 waits forever before sending the activation of micro-batch 1 to stage 1");
  EXPECT_EQ(program_problem({PipelineSchedule::kGpipe, 4, 6, 1},
                            naive_programs({PipelineSchedule::kGpipe, 4, 6, 1})),
            "");
}

class DamagedProgramTest : public testing::Test {
 protected:
  const PipelineShape shape_ = {PipelineSchedule::kInterleaved, 2, 2, 2};
  std::vector<StageProgram> programs_ = pipeline_programs(shape_, pipeline_table(shape_));
  std::string problem() const { return program_problem(shape_, programs_); }
  size_t find(int stage, Kind kind) const {
    const StageProgram& program = programs_[static_cast<size_t>(stage)];
    for (size_t i = 0; i < program.size(); ++i)
      if (program[i].kind == kind) return i;
    return program.size();
  }
  void erase(int stage, Kind kind) {
    StageProgram& program = programs_[static_cast<size_t>(stage)];
    program.erase(program.begin() + static_cast<std::ptrdiff_t>(find(stage, kind)));
  }
};

TEST_F(DamagedProgramTest, AReceiveIsLeftOut) {
  erase(1, Kind::kReceiveActivation);
  EXPECT_EQ(problem(),
            "stage 1, the forward pass of micro-batch 0 through chunk 0: its input is not received before");
}
TEST_F(DamagedProgramTest, ASendIsLeftOut) {
  erase(0, Kind::kSendActivation);
  EXPECT_EQ(problem(),
            "stage 0 waits forever before sending the activation of micro-batch 1, chunk 0, to stage 1");
}
TEST_F(DamagedProgramTest, ASendComesBeforeItsPass) {
  StageProgram& program = programs_[0];
  std::swap(program[find(0, Kind::kSendActivation)], program[find(0, Kind::kForward)]);
  EXPECT_EQ(problem(),
            "stage 0, sending the activation of micro-batch 0, chunk 0, to stage 1: it is not computed yet");
}
TEST_F(DamagedProgramTest, AMessageGoesToTheWrongStage) {
  programs_[0][find(0, Kind::kSendActivation)].peer = 0;
  EXPECT_EQ(problem(),
            "stage 0, sending the activation of micro-batch 0, chunk 0, to stage 0: it is not needed there");
  programs_[0][find(0, Kind::kSendActivation)].peer = 1;
  programs_[1][find(1, Kind::kReceiveActivation)].peer = 1;
  EXPECT_EQ(
      problem(),
      "stage 1, receiving the activation of micro-batch 0, chunk 0, from stage 1: it is not made there");
}
TEST_F(DamagedProgramTest, PairsDisagreeOnTheOrderOfTheirMessages) {
  StageProgram& program = programs_[1];
  const size_t first = find(1, Kind::kReceiveActivation);
  size_t second = first + 1;
  while (program[second].kind != Kind::kReceiveActivation) ++second;
  std::swap(program[first], program[second]);
  EXPECT_EQ(problem(),
            "stage 0 waits forever before sending the activation of micro-batch 0, chunk 0, to stage 1");
}

}  // namespace
}  // namespace tycho
