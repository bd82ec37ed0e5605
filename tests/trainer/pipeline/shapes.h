// The shapes of pipelines that the tests try.
#pragma once
#include <vector>

#include "trainer/pipeline/schedule.h"

namespace tycho {

inline std::vector<PipelineShape> many_shapes() {
  std::vector<PipelineShape> shapes;
  for (int stages = 1; stages <= 8; ++stages)
    for (int micro_batches = 1; micro_batches <= 20; ++micro_batches) {
      shapes.push_back({PipelineSchedule::kGpipe, stages, micro_batches, 1});
      shapes.push_back({PipelineSchedule::k1f1b, stages, micro_batches, 1});
      for (int chunks = 2; chunks <= 4; ++chunks)
        shapes.push_back({PipelineSchedule::kInterleaved, stages, micro_batches, chunks});
    }
  shapes.push_back({PipelineSchedule::k1f1b, 32, 128, 1});
  shapes.push_back({PipelineSchedule::kInterleaved, 16, 49, 5});
  return shapes;
}

inline std::string text_of(const PipelineShape& shape) {
  return std::string(name_of(shape.schedule)) + " " + std::to_string(shape.num_stages) + "x" +
         std::to_string(shape.num_micro_batches) + "x" + std::to_string(shape.num_chunks);
}

}  // namespace tycho
