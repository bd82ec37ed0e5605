// Memory that libraries take of a GPU, as lines of a plan.
#include "trainer/plan/gpu_libraries.h"

#include <gtest/gtest.h>

#include "tests/trainer/plan/planned_llama.h"

namespace tycho {
namespace {

TEST(GpuLibraries, AreEstimatesThatAPlanCounts) {
  TrainConfig config = llama_8b();
  config.device = DeviceKind::kCuda;
  const Plan alone = make_plan(config, {.num_ranks = 1});
  EXPECT_EQ(item(alone, "CUDA").note, "estimated: context and machine code");
  EXPECT_TRUE(item(alone, "cuBLAS").is_estimate);
  EXPECT_EQ(alone.estimated_bytes, item(alone, "CUDA").num_bytes + item(alone, "cuBLAS").num_bytes);
  EXPECT_THROW(item(alone, "NCCL"), std::runtime_error);
  config.parallel.dp_shard = -1;
  EXPECT_EQ(item(make_plan(config, {.num_ranks = 8}), "NCCL").note, "estimated: buffers of 1 group");
  config.parallel.tp = 2;
  const Plan plan = make_plan(config, {.num_ranks = 8});
  EXPECT_EQ(item(plan, "NCCL").note, "estimated: buffers of 3 groups");  // all ranks, dp_shard, tp
  int64_t sum = 0;
  for (const ByteItem& one : plan.memory) sum += one.name == "checkpoint copy" ? 0 : one.num_bytes;
  EXPECT_EQ(plan.training_bytes, sum);
}

}  // namespace
}  // namespace tycho
