// Estimates against sums done by hand.
#include "trainer/plan/step_time.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

/// Round figures: 1 TFLOP/s at half of it, 100 GB/s inside a node of 4, 10 GB/s outside, no least times.
Machine machine() {
  Machine one;
  one.name = "test", one.gpu = "GPU";
  one.memory_bytes = int64_t{80} << 30;
  one.peak_bf16 = one.peak_fp32 = 1e12;
  one.gpus_per_node = one.nvlink_gpus = 4;
  one.nvlink_rate = 100e9, one.network_rate = 10e9;
  one.efficiency = 0.5;
  return one;
}

TrainConfig config() {
  TrainConfig config;
  config.seq_len = 128;
  config.global_batch = Duration::parse("8sp");
  std::get<LlamaConfig>(config.model.value) = {
      .width = 64, .layers = 2, .heads = 4, .ffn_width = 128, .vocab_size = 1000};
  return config;
}

double flops(const TrainConfig& config) {
  return model_layout(config.model).flops_per_token_full(config.seq_len) * 8 * 128;
}

MeshShape mesh(int replicate, int shard, int tp = 1) { return {{1, replicate, shard, 1, tp}}; }

TEST(StepTime, IsFlopsOverTheRateForOneRank) {
  const StepTime time = step_time(config(), {}, machine());
  EXPECT_DOUBLE_EQ(time.compute_s, flops(config()) / 0.5e12);
  EXPECT_DOUBLE_EQ(time.step_s, time.compute_s);
  EXPECT_DOUBLE_EQ(time.tokens_per_s, 8 * 128 / time.compute_s);
  EXPECT_DOUBLE_EQ(time.mfu, 0.5);
  EXPECT_EQ(time.waits_s(), 0);
}

// Llama-8B's blocks on an H100, one sequence of 8,192 tokens: 5 x 32 = 160 blocks of a fixed order are two
// waves of 132.
TEST(StepTime, PricesTheOrderOfAttentionsSums) {
  Machine h100 = machine();
  h100.peak_bf16 = 989.5e12;
  TrainConfig llama = config();
  llama.precision = Precision::kBf16;
  llama.seq_len = 8192, llama.global_batch = Duration::parse("1sp");
  std::get<LlamaConfig>(llama.model.value) = {.width = 4096,
                                              .layers = 2,
                                              .heads = 32,
                                              .kv_heads = 8,
                                              .ffn_width = 128,
                                              .vocab_size = 1000,
                                              .max_seq_len = 8192};
  const auto order_s = [&](bool deterministic, int num_sms = 132) {
    llama.attention.deterministic = deterministic;
    StepWork work;
    work.num_sms = num_sms;
    const StepTime time = step_time(llama, work, h100);
    work.num_sms = 0;
    EXPECT_DOUBLE_EQ(time.compute_s - time.order_s, step_time(llama, work, h100).compute_s);
    return time.order_s;
  };
  const double forward = 2 * 4 * 4096.0 * 8192 * 8192 / 2, backward = 2.5 * forward;
  EXPECT_NEAR(order_s(true), backward / 274e12 * (264.0 / 160 - 1), 1e-9);
  EXPECT_NEAR(order_s(true, 128), 0, 1e-9);  // one full wave
  EXPECT_NEAR(order_s(false), forward * (1 / 566e12 - 1 / 306e12) + backward * (1 / 470e12 - 1 / 274e12),
              1e-9);
  EXPECT_EQ(order_s(true, 0), 0);
  llama.attention.flash = 3;
  EXPECT_NEAR(order_s(true),
              forward * (1 / 660e12 - 1 / 306e12) + backward * (1 / (0.92 * 514e12) - 1 / 274e12), 1e-9);
  EXPECT_NEAR(order_s(false), forward * (1 / 660e12 - 1 / 306e12) + backward * (1 / 514e12 - 1 / 274e12),
              1e-9);
  llama.attention.flash = 2;
  llama.precision = Precision::kFp32;  // plain products, whose order is cuBLAS's
  EXPECT_EQ(order_s(true), 0);
  EXPECT_EQ(order_s(false), 0);
}

// Four products: q, k and v (64 to 192), output (64 to 64), gate and up (64 to 256), down (128 to 64).
TEST(StepTime, PricesFp8ByItsProductsAndCasts) {
  TrainConfig with = config();
  with.precision = Precision::kBf16;
  const double without_s = step_time(with, {}, machine()).compute_s;
  const double N = 8 * 128, D = 64, F = 128, layers = 2;
  const double weights = 4 * D * D + 3 * D * F, inputs = D + D + D + F, outputs = 3 * D + D + 2 * F + D;
  const double bytes_per_s = 1e12 / 300,
               along = 2 * N * (D + D + F);  // not read again: of two norms and SwiGLU
  const auto saved_s = [&](Fp8Recipe recipe) {
    with.model.fp8.recipe = recipe;
    const StepTime time = step_time(with, {}, machine());
    EXPECT_DOUBLE_EQ(time.compute_s, without_s + time.fp8_s);
    return -time.fp8_s;
  };
  const auto expected_s = [&](double products, double casts) {
    return layers * (2 * N * weights * products / 0.5e12 * (1 - 1 / 1.7) - casts / bytes_per_s);
  };
  EXPECT_NEAR(saved_s(Fp8Recipe::kRowwiseWithGwHp),
              expected_s(2, 3 * (N * inputs + weights + N * outputs) - along + 5 * weights), 1e-12);
  EXPECT_NEAR(saved_s(Fp8Recipe::kRowwise),
              expected_s(3, 3 * (N * inputs + weights + N * outputs) - along + 5 * weights +
                                5 * N * (inputs + outputs)),
              1e-12);
  EXPECT_NEAR(saved_s(Fp8Recipe::kTensorwise),
              expected_s(3, 5 * (2 * N * (inputs + outputs) + 2 * weights) - along), 1e-12);
  with.model.fp8.gather = true;
  const double one_rank_s = saved_s(Fp8Recipe::kTensorwise);
  EXPECT_NEAR(one_rank_s, expected_s(3, 5 * (2 * N * (inputs + outputs) + 2 * weights) - along), 1e-12)
      << "nothing is gathered";
  const StepWork shared = {.mesh = {{1, 1, 2, 1, 1}}};
  with.model.fp8.gather = false;
  const double cast_s = step_time(with, shared, machine()).fp8_s;
  with.model.fp8.gather = true;
  EXPECT_NEAR(cast_s - step_time(with, shared, machine()).fp8_s, layers * (10 - 2) * weights / bytes_per_s,
              1e-12);
  with.model.fp8.gather = false;
  const double once_s = saved_s(Fp8Recipe::kRowwise);
  with.recompute.mode = Recompute::kSelective;  // multiplies gate and up again
  const double up = 2 * D * F;
  EXPECT_NEAR(-step_time(with, {}, machine()).fp8_s - once_s,
              layers * (2 * N * up / 0.5e12 * (1 - 1 / 1.7) - (N * D + 3 * up) / bytes_per_s), 1e-12);
  Machine cpu = machine();
  cpu.gpu.clear();
  EXPECT_EQ(step_time(with, {}, cpu).fp8_s, 0);
}

TEST(StepTime, CountsWhatIsComputedAgain) {
  TrainConfig again = config();
  const double tokens = 8 * 128, D = 64, F = 128, T = 128;
  // Queries, keys, values and the output's product, scores and their sum of values, gate and up; not down.
  const double block = 2 * D * (3 * D + D) + 4 * D * T + 2 * D * 2 * F;
  // Two norms of each of two blocks read and write fp32, at 300 FLOP of the peak a byte.
  const double norms = 2 * 2 * 2 * D * 4 * tokens * 300 / 1e12;
  const auto compute_s = [&](Recompute mode) {
    again.recompute.mode = mode;
    return step_time(again, {}, machine()).compute_s;
  };
  EXPECT_DOUBLE_EQ(compute_s(Recompute::kFull), (flops(again) + 2 * block * tokens) / 0.5e12 + norms);
  EXPECT_DOUBLE_EQ(compute_s(Recompute::kSelective),
                   (flops(again) + 2 * (2 * D * 2 * F) * tokens) / 0.5e12 + norms);
  EXPECT_DOUBLE_EQ(compute_s(Recompute::kNorms), flops(again) / 0.5e12 + norms);
  EXPECT_DOUBLE_EQ(compute_s(Recompute::kNone), flops(again) / 0.5e12);
}

TEST(StepTime, CountsTheResultsThatNormsFollow) {
  Olmo2Config olmo;
  olmo.width = 64, olmo.layers = 2, olmo.heads = 4, olmo.ffn_width = 128;
  TrainConfig once = config(), again = config();
  once.model.value = again.model.value = olmo;
  again.recompute.mode = Recompute::kFull;
  const double tokens = 8 * 128, D = 64, F = 128, T = 128;
  const double block = 2 * D * (3 * D + D) + 4 * D * T + 2 * D * 2 * F + 2 * F * D;
  EXPECT_DOUBLE_EQ(step_time(again, {}, machine()).compute_s - step_time(once, {}, machine()).compute_s,
                   2 * block * tokens / 0.5e12);
}

TEST(StepTime, CountsOnlyTheProductsThatABlockHas) {
  MptConfig mpt;
  mpt.width = 64, mpt.heads = 4, mpt.layers = 2, mpt.no_bias = true;
  TrainConfig whole = config(), reuses = config();
  whole.recompute.mode = reuses.recompute.mode = Recompute::kFull;
  whole.model.value = mpt;
  mpt.blocks = {.order = {"default", "again"}, .kinds = {{"again", {.reuse_kv = 1}}}};
  reuses.model.value = mpt;
  const double keys_and_values = 2.0 * 64 * 64 * 2;
  EXPECT_NEAR(step_time(whole, {}, machine()).compute_s - step_time(reuses, {}, machine()).compute_s,
              4 * keys_and_values * 8 * 128 / 0.5e12, 1e-15);  // forward, twice in backward, and once more
}

TEST(StepTime, SmallProductsReachLess) {
  Machine one = machine();
  one.half_width = 64;  // the model's width
  EXPECT_DOUBLE_EQ(step_time(config(), {}, one).mfu, 0.25);
  one.half_width = 0, one.half_tokens = 8 * 128;
  EXPECT_DOUBLE_EQ(step_time(config(), {}, one).mfu, 0.25);
  EXPECT_LT(step_time(config(), {.micro_batches = 4}, one).mfu, 0.25);
}

TEST(StepTime, TensorParallelWaitsForEveryByte) {
  const StepWork work = {.mesh = mesh(1, 1, 2), .traffic = {{"tp", 200'000'000, ""}}};
  const StepTime time = step_time(config(), work, machine());
  ASSERT_EQ(time.axes.size(), 1u);
  EXPECT_FALSE(time.axes[0].crosses);
  EXPECT_DOUBLE_EQ(time.axes[0].wait_s, 0.002);
  EXPECT_DOUBLE_EQ(time.step_s, time.compute_s + 0.002);
}

TEST(StepTime, AGroupOverMachinesUsesTheNetworkOfAllItsRanks) {
  const auto transfer = [&](const MeshShape& shape) {
    const StepTime time =
        step_time(config(), {.mesh = shape, .traffic = {{"dp_shard", 1'000'000'000, ""}}}, machine());
    return time.axes.at(0).transfer_s;
  };
  EXPECT_DOUBLE_EQ(transfer(mesh(2, 4)), 1e9 / 100e9) << "inside a machine";
  EXPECT_DOUBLE_EQ(transfer(mesh(1, 8)), 1e9 / 40e9) << "four ranks of the group on a machine";
  Machine fast = machine();
  fast.network_rate = 50e9;
  EXPECT_DOUBLE_EQ(
      step_time(config(), {.mesh = mesh(1, 8), .traffic = {{"dp_shard", 1'000'000'000, ""}}}, fast)
          .axes.at(0)
          .transfer_s,
      1e9 / 100e9)
      << "not faster than NVLink";
  const StepTime copies =
      step_time(config(), {.mesh = mesh(2, 4), .traffic = {{"dp_replicate", 1'000'000'000, ""}}}, machine());
  EXPECT_TRUE(copies.axes.at(0).crosses);
  EXPECT_DOUBLE_EQ(copies.axes.at(0).transfer_s, 1e9 / 10e9) << "one rank of the group on a machine";
}

TEST(StepTime, ShardingHidesBehindComputing) {
  const auto time = [&](int64_t num_bytes) {
    return step_time(config(), {.mesh = mesh(1, 4), .traffic = {{"dp_shard", num_bytes, ""}}}, machine());
  };
  const StepTime little = time(10'000'000);                      // 0.1 ms of 0.6 ms
  const double all = little.axes[0].transfer_s, ends = all / 4;  // of four units
  ASSERT_LT(all, little.compute_s);
  EXPECT_DOUBLE_EQ(little.axes[0].wait_s, ends + 0.1 * (all - ends));
  const StepTime much = time(1'000'000'000);
  EXPECT_DOUBLE_EQ(much.axes[0].wait_s, much.axes[0].transfer_s - 0.9 * much.compute_s);
}

TEST(StepTime, CountsCallsThatTakeTheirTimeWhateverTheirSize) {
  Machine slow = machine();
  slow.nvlink_s = 1e-3;
  const auto transfer = [&](TrainConfig config, int64_t passes) {
    return step_time(config, {.mesh = mesh(1, 4), .micro_batches = passes, .traffic = {{"dp_shard", 0, ""}}},
                     slow)
        .axes.at(0)
        .transfer_s;
  };
  TrainConfig zero = config();
  EXPECT_DOUBLE_EQ(transfer(zero, 2), 4 * (2 * 2 + 2) * 1e-3)
      << "four units, each gathered twice and summed once a pass";
  zero.parallel.reshard_after_forward = false;
  EXPECT_DOUBLE_EQ(transfer(zero, 2), 4 * (1 + 2) * 1e-3);
  zero.parallel.keep_gradients = true;
  EXPECT_DOUBLE_EQ(transfer(zero, 2), 4 * (1 + 1) * 1e-3);
}

/// Two blocks of width 64 with 2 of 4 heads for keys and values, 4 ranks of 32 of 128 tokens each; one
/// micro-batch of 8 sequences.
class RingTime : public testing::Test {
 protected:
  RingTime() {
    config_ = config();
    std::get<LlamaConfig>(config_.model.value).kv_heads = 2;
    config_.parallel.cp = 4, config_.parallel.cp_attention = CpAttention::kRing;
  }
  AxisTime cp_of(const Machine& machine, int64_t num_bytes) const {
    return step_time(config_, {.mesh = {{1, 1, 1, 4, 1}}, .traffic = {{"cp", num_bytes, ""}}}, machine)
        .axes.at(0);
  }
  static constexpr double kTokens = 8 * 32, kRows = kTokens * 2 * 2 * 16 * 4;  // bytes, as fp32
  static constexpr double kPart = 4 * 64 * 128 * kTokens / 4 / 0.5e12;         // seconds of attention
  static constexpr double kBytes = 2 * kRows * (3 + 3 + 4);
  TrainConfig config_;
};

TEST_F(RingTime, HidesHopsBehindAttentionToAPart) {
  Machine cpu = machine();  // sums of parts take a GPU's time alone
  cpu.gpu.clear();
  ASSERT_LT(2 * kRows / 100e9, kPart);
  const AxisTime hidden = cp_of(cpu, static_cast<int64_t>(kBytes));
  EXPECT_DOUBLE_EQ(hidden.transfer_s, kBytes / 100e9);
  // Gradients that come home wait for nothing.
  EXPECT_NEAR(hidden.wait_s, 2 * kRows / 100e9 + 0.1 * (hidden.transfer_s - 2 * kRows / 100e9), 1e-12);
  cpu.nvlink_rate = 1e9;
  const AxisTime shown = cp_of(cpu, static_cast<int64_t>(kBytes));
  // Three hops forward, and four backward beside twice the work.
  EXPECT_NEAR(shown.wait_s, shown.transfer_s - 0.9 * 2 * (3 * kPart + 4 * 2 * kPart), 1e-12);
  cpu.nvlink_rate = 100e9, cpu.nvlink_s = 1e-3;
  EXPECT_NEAR(cp_of(cpu, 0).transfer_s, 2 * (3 + 5) * 1e-3, 1e-12) << "hops of a block";
}

TEST_F(RingTime, GoesAtTheRateOfOneCardBetweenMachines) {
  Machine two = machine();
  two.gpu.clear(), two.nvlink_gpus = 2;
  EXPECT_DOUBLE_EQ(cp_of(two, 1'000'000'000).transfer_s, 1e9 / 10e9);
  config_.parallel.cp_attention = CpAttention::kGather;
  EXPECT_DOUBLE_EQ(cp_of(two, 1'000'000'000).transfer_s, 1e9 / 20e9) << "gathered by two cards";
}

TEST_F(RingTime, TakesTimeToSumPartsOnAGpuAndHidesNothingBehindShortWindows) {
  Machine cpu = machine();
  cpu.gpu.clear();
  const auto bytes = static_cast<int64_t>(kBytes);
  const double sums = 2 * 4 * (kTokens * 64 * (28 + 12) + kRows / 4 * 28) / (1e12 / 300);
  EXPECT_NEAR(cp_of(machine(), bytes).wait_s - cp_of(cpu, bytes).wait_s, sums, 1e-12);
  MptConfig windowed;
  windowed.width = 64, windowed.layers = 2, windowed.heads = 4, windowed.kv_heads = 2;
  windowed.vocab_size = 1000, windowed.max_seq_len = 128, windowed.sliding_window = 32;
  config_.model.value = windowed;
  const AxisTime shown = cp_of(cpu, bytes);
  EXPECT_DOUBLE_EQ(shown.wait_s, shown.transfer_s);
}

TEST(StepTime, StagesWithoutWorkTakeTime) {
  const StepTime time = step_time(config(), {.mesh = {{4, 1, 1, 1, 1}}, .micro_batches = 8}, machine());
  EXPECT_DOUBLE_EQ(time.bubble_s, time.compute_s * 3 / 8);
}

}  // namespace
}  // namespace tycho
