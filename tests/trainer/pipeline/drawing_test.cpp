// Pictures of steps, compared whole.
#include "trainer/pipeline/drawing.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/trainer/pipeline/shapes.h"

namespace tycho {
namespace {

TEST(PipelineDrawing, ShowsWhoComputesWhatWhen) {
  EXPECT_EQ(draw_pipeline({PipelineSchedule::k1f1b, 4, 6, 1}),
            "  stage 0  0 1 2 3 . . . . . . 0== 4 1== 5 2== . 3== . 4== . 5==\n"
            "  stage 1  . 0 1 2 . . . . 0== 3 1== 4 2== 5 3== . 4== . 5== . .\n"
            "  stage 2  . . 0 1 . . 0== 2 1== 3 2== 4 3== 5 4== . 5== . . . .\n"
            "  stage 3  . . . 0 0== 1 1== 2 2== 3 3== 4 4== 5 5== . . . . . .\n"
            "  0 forward, 0== backward pass of micro-batch 0\n"
            "  . no work, 33.3 % of the time\n"
            "  activations held at once, each of a micro-batch: 4 on stage 0, 1 on stage 3\n");
}

TEST(PipelineDrawing, NamesChunksByLetters) {
  EXPECT_EQ(draw_pipeline({PipelineSchedule::kInterleaved, 2, 2, 2}),
            "  stage 0  a0 a1 b0 b1 .  .  b0=== .  b1=== a0=== a1===\n"
            "  stage 1  .  a0 a1 b0 b0=== b1 b1=== a0=== a1=== .  .\n"
            "  a0 forward, a0== backward pass of micro-batch 0 through chunk a of a stage\n"
            "  . no work, 20.0 % of the time\n"
            "  activations held at once, each of one chunk: 4 on stage 0, 3 on stage 1\n");
}

TEST(PipelineDrawing, LeavesOutTheMiddleOfALongStep) {
  const std::string text = draw_pipeline({PipelineSchedule::k1f1b, 2, 400, 1});
  EXPECT_NE(text.find("\n\n  ... 68 more like these\n\n  stage 0"), std::string::npos) << text;
  EXPECT_NE(text.find("399====\n"), std::string::npos) << text;
}

TEST(PipelineDrawing, FitsOnATerminal) {
  for (const PipelineShape& shape : many_shapes()) {
    std::istringstream lines(draw_pipeline(shape));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << text_of(shape);
  }
}

}  // namespace
}  // namespace tycho
