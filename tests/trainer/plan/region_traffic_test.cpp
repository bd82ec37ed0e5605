// What ranks that share sequences receive and keep, and gradients that travel as bf16.
#include "trainer/plan/region_traffic.h"

#include <gtest/gtest.h>

#include "trainer/plan/plan.h"

namespace tycho {
namespace {

/// 32 sequences of 4,096 tokens a step, one at a time.
TrainConfig small_llama() {
  TrainConfig config;
  std::get<LlamaConfig>(config.model.value) = {.width = 1024,
                                               .layers = 6,
                                               .heads = 16,
                                               .kv_heads = 4,
                                               .ffn_width = 4096,
                                               .vocab_size = 32000,
                                               .tied = false};
  config.train_data.value = MdsConfig{.local_dir = "data"};
  config.seq_len = 4096;
  config.precision = Precision::kBf16;
  config.global_batch = {32, DurationUnit::kSample}, config.micro_batch = Duration{1, DurationUnit::kSample};
  return config;
}

const ByteItem& item(const std::vector<ByteItem>& items, const std::string& name) {
  for (const ByteItem& one : items)
    if (one.name == name) return one;
  throw std::runtime_error("no item " + name);
}

TEST(RegionTraffic, SharesActivationsAndMovesKeysAndValues) {
  TrainConfig config = small_llama();
  const Plan whole = make_plan(config, {.num_ranks = 1});
  config.parallel.cp = 4, config.parallel.dp_shard = 2;
  const Plan plan = make_plan(config, {.num_ranks = 8});
  EXPECT_EQ(plan.mesh, "dp_shard 2 x cp 4");
  EXPECT_EQ(plan.micro_batches_per_step, 16);
  EXPECT_EQ(item(plan.memory, "activations").num_bytes, item(whole.memory, "activations").num_bytes / 4);
  EXPECT_NEAR(static_cast<double>(item(plan.memory, "parameters").num_bytes),
              static_cast<double>(item(whole.memory, "parameters").num_bytes) / 8, 1e5);
  // Two gathers and a sum in each block, of 4 heads of keys and of values, from three ranks of four.
  const int64_t one = 4096 / 4 * 3 * (2 * 4 * 64) * 2;
  EXPECT_EQ(item(plan.traffic, "cp").num_bytes, 16 * 6 * 3 * one);
  config.recompute = {Recompute::kFull, 1};
  EXPECT_EQ(item(make_plan(config, {.num_ranks = 8}).traffic, "cp").num_bytes, 16 * 6 * 4 * one);
}

TEST(RegionTraffic, OnARingHoldsKeysOfTwoRanksAndReturnsGradientsInFp32) {
  TrainConfig config = small_llama();
  config.parallel.cp = 4, config.parallel.dp_shard = 2;
  const Plan gathered = make_plan(config, {.num_ranks = 8});
  config.parallel.cp_attention = CpAttention::kRing;
  const Plan ring = make_plan(config, {.num_ranks = 8});
  const int64_t part = 4096 / 4 * (2 * 4 * 64);  // numbers of a rank's keys and values
  // In each block from three ranks forward and backward, and gradients once around.
  EXPECT_EQ(item(ring.traffic, "cp").num_bytes, 16 * 6 * part * (2 * 3 * 2 + 4 * 4));
  const int64_t room = 2 * 4 * part * 2, on_ring = 2 * part * 2 + 3 * part * 4 + 4096 / 4 * 1024 * 4;
  EXPECT_EQ(item(gathered.memory, "shared activations").num_bytes -
                item(ring.memory, "shared activations").num_bytes,
            room - on_ring);
  for (const Plan* plan : {&gathered, &ring}) {
    ASSERT_EQ(plan->cp_forms.size(), 2U);
    EXPECT_EQ(plan->cp_forms[0].buffer_bytes, room);
    EXPECT_EQ(plan->cp_forms[1].buffer_bytes, on_ring);
    EXPECT_EQ(plan->cp_forms[0].received_bytes, item(gathered.traffic, "cp").num_bytes);
    EXPECT_EQ(plan->cp_forms[1].received_bytes, item(ring.traffic, "cp").num_bytes);
    EXPECT_EQ(plan->cp_forms[1].step_s, 0) << "no machine, no time";
  }
  config.parallel.cp = 1, config.parallel.cp_attention = CpAttention::kGather;
  EXPECT_TRUE(make_plan(config, {.num_ranks = 8}).cp_forms.empty());
}

int64_t sum_of(const std::vector<ByteItem>& items, const std::string& name, const std::string& note) {
  int64_t sum = 0;
  for (const ByteItem& one : items)
    if (one.name == name && one.note.starts_with(note)) sum += one.num_bytes;
  return sum;
}

// Ranks along cp have parts of each micro-batch, and sum them before they go into the tree.
TEST(RegionTraffic, OfATreeSumsEveryMicroBatchOverRanksThatShareSequences) {
  TrainConfig config = small_llama();
  config.parallel.reduce = GradientOrder::kCanonical;
  config.parallel.cp = 4, config.parallel.dp_shard = 2;
  const Plan plan = make_plan(config, {.num_ranks = 8});
  const auto all = static_cast<double>(plan.num_params) * 4;  // fp32
  EXPECT_NEAR(static_cast<double>(sum_of(plan.traffic, "cp", "gradients summed, 16 times")), 16 * all / 4 * 3,
              1e6);
  // Sixteen leaves: four sums wait, of the quarter that a rank has.
  EXPECT_NEAR(static_cast<double>(item(plan.memory, "gradients held").num_bytes), 4 * all / 4, 1e6);
  config.parallel.dp_shard = 32;  // a micro-batch on each rank is a leaf, which all owners sum
  EXPECT_EQ(sum_of(make_plan(config, {.num_ranks = 128}).traffic, "cp", "gradients summed"), 0);
}

TEST(RegionTraffic, OfMatricesIsThatOfARanksTokens) {
  TrainConfig config = small_llama();
  config.parallel.tp = 2;
  const int64_t alone = item(make_plan(config, {.num_ranks = 2}).traffic, "tp").num_bytes;
  config.parallel.cp = 2;
  EXPECT_EQ(item(make_plan(config, {.num_ranks = 4}).traffic, "tp").num_bytes, alone / 2);
}

TEST(RegionTraffic, OfGradientsIsHalvedByBf16) {
  for (const int64_t shard : {1, 4}) {
    TrainConfig config = small_llama();
    config.parallel.dp_shard = shard;
    const Plan fp32 = make_plan(config, {.num_ranks = 8});
    config.parallel.reduce_dtype = Precision::kBf16;
    const Plan bf16 = make_plan(config, {.num_ranks = 8});
    EXPECT_EQ(bf16.traffic.back().name, "dp_replicate");
    EXPECT_EQ(bf16.traffic.back().num_bytes, fp32.traffic.back().num_bytes / 2);
    const auto sent = static_cast<double>(item(bf16.memory, "gradients sent").num_bytes);
    double wanted = static_cast<double>(item(fp32.memory, "gradients").num_bytes) / 2;
    if (shard > 1) {
      EXPECT_EQ(bf16.traffic[1].num_bytes, fp32.traffic[1].num_bytes / 2);
      wanted += static_cast<double>(item(fp32.memory, "whole gradients").num_bytes) / 2;
    }
    EXPECT_NEAR(sent, wanted, 1e5);
  }
}

}  // namespace
}  // namespace tycho
