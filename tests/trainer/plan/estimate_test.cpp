// The machine of a plan, and the lines that the plan has of it.
#include "trainer/plan/estimate.h"

#include <gtest/gtest.h>

#include "trainer/base/error.h"
#include "trainer/metrics/device_peak.h"

namespace tycho {
namespace {

TrainConfig on(const std::string& machine) {
  TrainConfig config;
  config.machine.name = machine;
  return config;
}

TEST(Estimate, AgreesWithThePeaksAndMemoriesThatMetricsUse) {
  for (const char* name : {"h100", "h200", "gb200"}) {
    const Machine machine = machine_of({.name = name});
    EXPECT_EQ(device_peak_flops(machine.gpu, Precision::kBf16), machine.peak_bf16) << name;
    const std::optional<int64_t> known = gpu_memory_bytes(machine.gpu);
    EXPECT_EQ(known.value_or(machine.memory_bytes), machine.memory_bytes) << name;
  }
}

TEST(Estimate, PlansForNodesOfTheMachine) {
  EXPECT_EQ(ranks_per_node(on("h100"), {.num_ranks = 64}), 8);
  EXPECT_EQ(ranks_per_node(on("h100"), {.num_ranks = 4}), 4);
  EXPECT_EQ(ranks_per_node(on("gb200"), {.num_ranks = 64}), 4);
  EXPECT_EQ(ranks_per_node(on("h100"), {.num_ranks = 64, .ranks_per_node = 2}), 2);
  EXPECT_EQ(ranks_per_node(on(""), {.num_ranks = 64}), 64);
  EXPECT_EQ(planned_machine(on("h100"), {.num_ranks = 4, .ranks_per_node = 2}).nvlink_gpus, 2);
  EXPECT_EQ(planned_machine(on("gb200"), {.num_ranks = 36, .ranks_per_node = 2}).nvlink_gpus, 36);
  EXPECT_THROW(planned_machine(on("h100"), {.num_ranks = 16, .ranks_per_node = 16}), Error);
  EXPECT_GT(planned_machine(on("cpu"), {.num_ranks = 2}).memory_bytes, 0);
}

TEST(Estimate, AddsSpeedTimeAndFit) {
  TrainConfig config = on("h100");
  config.parallel.dp_shard = 4;
  const Plan plan = make_plan(config, {.num_ranks = 8});
  ASSERT_TRUE(plan.estimate.has_value());
  EXPECT_DOUBLE_EQ(plan.seconds, plan.estimate->step_s * 100);
  EXPECT_EQ(plan.fit_note, "fits into the 84.8 GB of one H100 HBM3");
  const std::string text = plan_text(plan, config);
  for (const char* part :
       {"machine     h100: 8 a node, 84.8 GB each; NVLink 350 GB/s, network 45 GB/s\n", "speed       ",
        "waits       dp_replicate ", "over NVLink", "  machine 0  0  1  2  3 | 4  5  6  7\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_FALSE(make_plan(TrainConfig{}).estimate.has_value());
  EXPECT_EQ(make_plan(TrainConfig{}).machine, "");
  config.machine.memory = Bytes::parse("1MiB");
  EXPECT_EQ(make_plan(config, {.num_ranks = 8}).fit_note, "more than the 1.05 MB of one H100 HBM3");
}

TEST(Estimate, DoesNotClaimToKnowTheSpeedOfACpu) {
  const Plan plan = make_plan(on("cpu"), {.num_ranks = 2});
  EXPECT_NE(plan.speed.find("a guess: only compare meshes by it"), std::string::npos) << plan.speed;
  EXPECT_EQ(plan.speed.find("MFU"), std::string::npos);
}

}  // namespace
}  // namespace tycho
