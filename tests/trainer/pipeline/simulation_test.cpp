// Times of steps: closed formulas, and the longest path through the graph of passes.
#include "trainer/pipeline/simulation.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

#include "tests/trainer/pipeline/shapes.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

using Direction = PipelineAction::Kind;

double idle_share(const PipelineShape& shape) {
  return simulate_pipeline(shape, pipeline_table(shape), equal_costs(shape)).idle_share;
}

TEST(PipelineSimulation, PlainSchedulesIdleAsTheirFormulaSays) {
  for (const PipelineShape& shape : many_shapes()) {
    const double p = shape.num_stages, m = shape.num_micro_batches;
    if (shape.schedule == PipelineSchedule::kInterleaved) continue;
    EXPECT_NEAR(idle_share(shape), (p - 1) / (m + p - 1), 1e-12) << text_of(shape);
  }
}

TEST(PipelineSimulation, InterleavedIdlesLessByTheNumberOfChunks) {
  int num_checked = 0;
  for (const PipelineShape& shape : many_shapes()) {
    const double p = shape.num_stages, m = shape.num_micro_batches, v = shape.num_chunks;
    if (shape.schedule != PipelineSchedule::kInterleaved) continue;
    if (shape.num_micro_batches % shape.num_stages == 0) {
      EXPECT_NEAR(idle_share(shape), (p - 1) / (v * m + p - 1), 1e-12) << text_of(shape);
      ++num_checked;
    } else {  // no less than the best that there is
      EXPECT_GE(idle_share(shape), (p - 1) / (v * m + p - 1) - 1e-12) << text_of(shape);
    }
  }
  EXPECT_GT(num_checked, 100);
}

/// The end of the last pass: that of the longest chain of passes of which each waits for the one before.
double longest_path(const PipelineShape& shape, const PipelineTable& table, const PipelineCosts& costs) {
  std::map<std::tuple<int, int, Direction>, std::pair<int, int>>
      place;  // (part, micro-batch, kind) -> (stage, i)
  for (int stage = 0; stage < shape.num_stages; ++stage)
    for (size_t i = 0; i < table[static_cast<size_t>(stage)].size(); ++i) {
      const PipelineAction& action = table[static_cast<size_t>(stage)][i];
      place[{shape.part_of(stage, action.chunk), action.micro_batch, action.kind}] = {stage,
                                                                                      static_cast<int>(i)};
    }
  std::map<std::pair<int, int>, double> known;
  const std::function<double(int, int)> end_of = [&](int stage, int i) -> double {
    if (i < 0) return 0;
    if (const auto found = known.find({stage, i}); found != known.end()) return found->second;
    const PipelineAction& action = table[static_cast<size_t>(stage)][static_cast<size_t>(i)];
    const int part = shape.part_of(stage, action.chunk);
    const bool forward = action.kind == Direction::kForward;
    const double cost = (forward ? costs.forward_s : costs.backward_s)[static_cast<size_t>(part)];
    double begin = end_of(stage, i - 1);
    const int source = part + (forward ? -1 : 1);
    if (source >= 0 && source < shape.num_parts()) {
      const auto [there, j] = place.at({source, action.micro_batch, action.kind});
      begin = std::max(begin, end_of(there, j) + (there == stage ? 0 : costs.send_s));
    }
    return known[{stage, i}] = begin + cost;
  };
  double last = 0;
  for (int stage = 0; stage < shape.num_stages; ++stage)
    last = std::max(last, end_of(stage, static_cast<int>(table[static_cast<size_t>(stage)].size()) - 1));
  return last;
}

TEST(PipelineSimulation, UnevenCostsTakeTheLongestPath) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> cost(0.1, 3);
  for (const PipelineShape& shape : many_shapes()) {
    PipelineCosts costs = equal_costs(shape);
    double sum = 0;
    for (auto* list : {&costs.forward_s, &costs.backward_s})
      for (double& one : *list) sum += one = cost(random);
    costs.send_s = cost(random) / 4;
    const PipelineTable table = pipeline_table(shape);
    const PipelineTimes times = simulate_pipeline(shape, table, costs);
    EXPECT_NEAR(times.step_s, longest_path(shape, table, costs), 1e-9) << text_of(shape);
    EXPECT_NEAR(times.idle_share, 1 - sum * shape.num_micro_batches / shape.num_stages / times.step_s, 1e-9);
  }
}

TEST(PipelineSimulation, SaysWhereATableStops) {
  const PipelineShape shape = {PipelineSchedule::k1f1b, 2, 2, 1};
  PipelineTable table = pipeline_table(shape);
  std::swap(table[1][0], table[1][1]);
  try {
    simulate_pipeline(shape, table, equal_costs(shape));
    FAIL() << "a backward pass came before its forward pass";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[pipeline] stage 0 waits forever before the backward pass of micro-batch 0");
  }
}

}  // namespace
}  // namespace tycho
