// Which micro-batch is the largest that fits, compared with the plan of every divisor.
#include "trainer/plan/memory_choice.h"

#include <gtest/gtest.h>

#include "trainer/base/field_types.h"
#include "trainer/plan/estimate.h"
#include "trainer/plan/mesh_choice.h"
#include "trainer/recipe/config_rules.h"

namespace tycho {
namespace {

TrainConfig mpt_1b() {
  TrainConfig config;
  std::get<MdsConfig>(config.train_data.value).local_dir = "/nowhere";
  config.model.value = MptConfig{.width = 2048, .layers = 24, .heads = 16};
  config.precision = Precision::kBf16;
  config.seq_len = 2048;
  config.global_batch = Duration::parse("96sp");
  config.micro_batch.emplace().is_auto = true;
  config.machine.name = "h100";
  return config;
}

int64_t bytes_with(const TrainConfig& config, int64_t sequences, int64_t num_ranks) {
  const PlanDevices devices = {.num_ranks = num_ranks};
  return device_bytes(plan_mesh(with_choice(config, {.sequences = sequences}), devices),
                      planned_machine(config, devices));
}

TEST(MemoryChoice, IsTheLargestDivisorThatFits) {
  for (const int64_t ranks : {1, 2, 8}) {
    const TrainConfig config = mpt_1b();
    const MemoryChoice choice = choose_memory(config, {.num_ranks = ranks});
    ASSERT_TRUE(choice.fits);
    EXPECT_EQ(choice.of_sequences, 96 / ranks);
    EXPECT_EQ(choice.room_bytes, int64_t{79} << 30);
    EXPECT_EQ(choice.device_bytes, bytes_with(config, choice.sequences, ranks));
    int64_t largest = 0;
    for (int64_t n = 1; n <= 96 / ranks; ++n)
      if (96 / ranks % n == 0 && bytes_with(config, n, ranks) <= choice.room_bytes) largest = n;
    EXPECT_EQ(choice.sequences, largest);
    EXPECT_GT(largest, 1);
  }
}

// 2 sequences x 32 heads in a fixed order are 3 x 64 = 192 blocks, two waves of an H100's 132
// multiprocessors; 4 are 256.
TEST(MemoryChoice, FillsTheWavesOfAttentionsBlocks) {
  TrainConfig config = mpt_1b();
  config.model.value = LlamaConfig{
      .width = 2048, .layers = 16, .heads = 32, .kv_heads = 8, .ffn_width = 8192, .vocab_size = 1000};
  config.seq_len = 16384;
  config.global_batch = Duration::parse("6sp");
  const PlanDevices devices = {.num_ranks = 1};
  const auto step_s = [&](int64_t sequences) {
    return plan_mesh(with_choice(config, {.sequences = sequences}), devices).estimate->step_s;
  };
  for (const int64_t gib : {60, 80, 100, 160, 400}) {
    config.machine.memory = Bytes{gib << 30};
    const MemoryChoice choice = choose_memory(config, devices);
    ASSERT_TRUE(choice.fits);
    for (const int64_t n : {1, 2, 3, 6}) {
      if (bytes_with(config, n, 1) > choice.room_bytes) continue;
      EXPECT_LE(choice.step_s, 1.02 * step_s(n)) << gib << " " << n;
    }
  }
}

TEST(MemoryChoice, GrowsWithTheMachineAndEndsWithTheShareOfARank) {
  TrainConfig config = mpt_1b();
  int64_t before = 0;
  for (const int64_t gib : {30, 40, 60, 100, 400, 4000}) {
    config.machine.memory = Bytes{gib << 30};
    const int64_t sequences = choose_memory(config, {.num_ranks = 2}).sequences;
    EXPECT_GE(sequences, before) << gib;
    EXPECT_EQ(48 % sequences, 0);
    before = sequences;
  }
  EXPECT_EQ(before, 48);
}

TEST(MemoryChoice, SaysSoWhenNotEvenOneSequenceFits) {
  TrainConfig config = mpt_1b();
  config.machine.memory = Bytes{int64_t{1} << 30};
  const MemoryChoice choice = choose_memory(config, {.num_ranks = 1});
  EXPECT_EQ(choice.sequences, 1);
  EXPECT_FALSE(choice.fits);
  EXPECT_NE(choice_text(config, choice).find(": too much, and one sequence is the least\n"),
            std::string::npos);
}

TEST(MemoryChoice, EveryMeshHasItsOwn) {
  const TrainConfig config = mpt_1b();
  const PlanDevices devices = {.num_ranks = 8};
  const std::vector<MeshChoice> choices = rank_meshes(config, devices);
  ASSERT_GT(choices.size(), 3u);
  for (const MeshChoice& one : choices) {
    TrainConfig with_mesh = config;
    with_mesh.parallel = with_sizes(config.parallel, one.mesh);
    const MemoryChoice choice = choose_memory(with_mesh, devices);
    EXPECT_EQ(one.chosen, fmt::format("micro_batch {}sp", choice.sequences)) << describe(one.mesh);
    EXPECT_EQ(one.device_bytes, choice.device_bytes);
    EXPECT_EQ(one.fits, choice.fits);
  }
  EXPECT_NE(choices_text(choices, planned_machine(config, devices)).find("\n     micro_batch "),
            std::string::npos);
}

TEST(MemoryChoice, RecomputesTheLeastThatFits) {
  TrainConfig config = mpt_1b();
  config.recompute.mode = Recompute::kAuto;
  const PlanDevices devices = {.num_ranks = 2};
  std::vector<Recompute> chosen;
  for (const int64_t gib : {400, 34, 30}) {
    config.machine.memory = Bytes{gib << 30};
    const MemoryChoice choice = choose_memory(config, devices);
    ASSERT_TRUE(choice.fits) << gib;
    chosen.push_back(choice.recompute);
    for (const Recompute mode :
         {Recompute::kNone, Recompute::kNorms, Recompute::kSelective, Recompute::kFull}) {
      TrainConfig given = config;
      given.recompute.mode = mode;
      const MemoryChoice other = choose_memory(given, devices);
      EXPECT_EQ(other.recompute, mode);
      EXPECT_TRUE(!other.fits || other.step_s >= choice.step_s) << gib << enum_name(mode);
    }
  }
  EXPECT_EQ(chosen.front(), Recompute::kNone);
  EXPECT_NE(chosen.back(), Recompute::kNone);
  config.machine.memory = Bytes{int64_t{1} << 30};
  const MemoryChoice none = choose_memory(config, devices);
  EXPECT_FALSE(none.fits);
  EXPECT_NE(choice_text(config, none).find("recompute.mode = \"auto\": "), std::string::npos);
}

TEST(MemoryChoice, CountsAsTheDefaultUntilItIsMade) {
  TrainConfig config = mpt_1b();
  EXPECT_TRUE(check_config(config, 8).empty()) << "it is a valid recipe";
  const int64_t open = micro_batch_sequences(config);
  config.micro_batch.reset();
  EXPECT_EQ(open, micro_batch_sequences(config));
}

}  // namespace
}  // namespace tycho
