// Orders of passes against those in which PyTorch's schedules compute (tests/golden/pipeline_orders.py).
#include "trainer/pipeline/schedule.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "trainer/base/json.h"

namespace tycho {
namespace {

Json torch_orders() {
  const char* source = std::getenv("TYCHO_SOURCE_DIR");
  std::ifstream file(std::string(source != nullptr ? source : ".") + "/tests/golden/pipeline/orders.json");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_json(text.str(), "orders.json");
}

std::string order_text(const StageActions& actions) {
  std::string text;
  for (const PipelineAction& action : actions)
    text += std::string(text.empty() ? "" : " ") +
            (action.kind == PipelineAction::Kind::kForward ? "F" : "B") + std::to_string(action.chunk) + "." +
            std::to_string(action.micro_batch);
  return text;
}

TEST(PipelineSchedule, ComputesInTheOrderOfPyTorch) {
  const Json cases = torch_orders();
  ASSERT_EQ(cases.size(), 37u);
  for (const Json& one : cases) {
    PipelineShape shape = {PipelineSchedule::kGpipe, one.at("stages"), one.at("micro_batches"),
                           one.at("chunks")};
    for (const auto& [name, schedule] : enum_names(PipelineSchedule()))
      if (one.at("schedule") == name) shape.schedule = schedule;
    ASSERT_EQ(shape_problem(shape), "");
    const PipelineTable table = pipeline_table(shape);
    ASSERT_EQ(table.size(), one.at("orders").size());
    for (size_t stage = 0; stage < table.size(); ++stage)
      EXPECT_EQ(order_text(table[stage]), one.at("orders")[stage])
          << one.at("schedule") << " stage " << stage;
  }
}

TEST(PipelineSchedule, PartsGoRoundTheStages) {
  const PipelineShape shape = {PipelineSchedule::kInterleaved, 3, 6, 2};
  EXPECT_EQ(shape.num_parts(), 6);
  for (int part = 0; part < shape.num_parts(); ++part)
    EXPECT_EQ(shape.part_of(shape.stage_of(part), shape.chunk_of(part)), part);
  EXPECT_EQ(shape.stage_of(4), 1);
  EXPECT_EQ(shape.chunk_of(4), 1);
}

TEST(PipelineSchedule, SaysWhatIsWrongWithAShape) {
  EXPECT_EQ(shape_problem({PipelineSchedule::k1f1b, 0, 4, 1}), "a pipeline has at least one stage, not 0");
  EXPECT_EQ(shape_problem({PipelineSchedule::k1f1b, 2, 0, 1}), "a step has at least one micro-batch, not 0");
  EXPECT_EQ(shape_problem({PipelineSchedule::kGpipe, 2, 4, 2}),
            "the schedule \"gpipe\" has one chunk on each stage, not 2; \"interleaved\" has several");
  EXPECT_EQ(
      shape_problem({PipelineSchedule::kInterleaved, 2, 4, 1}),
      "the schedule \"interleaved\" has at least two chunks on each stage, not 1; write \"1f1b\" for one");
}

}  // namespace
}  // namespace tycho
