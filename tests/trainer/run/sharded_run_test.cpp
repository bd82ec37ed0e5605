// Whole runs whose ranks share the parameters: curves, weights and checkpoints are those of one rank.
#include <string>
#include <vector>

#include "tests/trainer/run/sharded_fixture.h"

namespace tycho {
namespace {

TEST_F(ShardedRun, HasTheCurveOfOneRank) {
  expect_as_one_rank("tied, AdamW", {kTwo, kFour, kTwoByTwo});
  llama().tied = false;
  config_.optimizer.value = LionConfig{.lr = 3e-4};
  expect_as_one_rank("untied, Lion", {kTwo, kTwoByTwo}, 1e-5);  // signs of sums near 0 may flip
  config_.optimizer.value = SgdConfig{.lr = 0.05};
  config_.clip.norm = 0.1;
  expect_as_one_rank("SGD, always clipped", {kFour, kTwoByTwo});
}

TEST_F(ShardedRun, OfMuonHasTheCurveOfOneRank) {
  // Matrices of three heads' width are shared by two and by four.
  llama().width = 36, llama().heads = 3, llama().kv_heads = 1, llama().ffn_width = 37;
  config_.optimizer.value = MuonConfig{.lr = 0.02, .adamw_lr = 3e-3};
  expect_as_one_rank("Muon", {kTwo, kFour, kTwoByTwo}, muon_tolerance());
}

TEST_F(ShardedRun, HasTheCurveOfOneRankWhateverIsKept) {
  config_.parallel.reshard_after_forward = false;
  expect_as_one_rank("parameters", {kTwo, kTwoByTwo});
  config_.parallel.keep_gradients = true;
  expect_as_one_rank("parameters and gradients", {kFour, kTwoByTwo});
  config_.parallel.reshard_after_forward = true;
  config_.recompute = {Recompute::kFull, 1};
  expect_as_one_rank("gradients, and blocks compute again", {kTwo});
}

TEST_F(ShardedRun, HasTheCurveOfOneRankWithSizesThatDoNotDivide) {
  // 3 x 37 and 37 are shared by 2 and by 4.
  llama().width = 36, llama().heads = 3, llama().kv_heads = 1, llama().ffn_width = 37, llama().layers = 3;
  llama().vocab_size = 67;
  expect_as_one_rank("odd sizes", {kTwo, kFour});
  config_.param_groups = {{.match = "norm", .lr_scale = 0.5}, {.match = "layers\\.[01]\\.", .freeze = true}};
  expect_as_one_rank("groups and frozen blocks", {kFour});
  config_.param_groups = {{.match = "embed|layers\\.1\\.", .freeze = true}};
  config_.clip.value = 1e-3;
  expect_as_one_rank("frozen embedding, clipped by value", {kTwo});
  config_.clip = {.adaptive = 1e-3};
  expect_as_one_rank("clipped by row", {kTwo, kFour, kTwoByTwo});
}

TEST_F(ShardedRun, OfMptAndGpt2HasTheCurveOfOneRank) {
  // Biases of keys have gradients of rounding errors alone, which Adam would blow up.
  config_.optimizer.value = SgdConfig{.lr = 0.05};
  MptConfig mpt;
  mpt.width = 32, mpt.layers = 3, mpt.heads = 4, mpt.vocab_size = 64, mpt.max_seq_len = 16;
  mpt.positions = PositionKind::kAlibi;
  mpt.resid_dropout = 0.2, mpt.embedding_dropout = 0.1;
  config_.model.value = mpt;
  expect_as_one_rank("MPT with dropout", {kTwo, kTwoByTwo});
  Gpt2Config gpt2;
  gpt2.width = 32, gpt2.layers = 2, gpt2.heads = 4, gpt2.vocab_size = 64, gpt2.max_seq_len = 16;
  config_.model.value = gpt2;
  expect_as_one_rank("GPT-2", {kFour});
}

TEST_F(ShardedRun, InBf16StaysNearOneRank) {
  config_.precision = Precision::kBf16;
  expect_as_one_rank("fp32 masters", {kTwo, kTwoByTwo}, 3e-3);
  config_.master_weights = MasterWeights::kNone;
  expect_as_one_rank("none", {kTwo}, 3e-3);
}

TEST_F(ShardedRun, WithGradientsThatTravelAsBf16StaysNearOneRank) {
  config_.parallel.reduce_dtype = Precision::kBf16;
  expect_as_one_rank("fp32 otherwise", {kTwo, {2, 1}, kTwoByTwo}, 3e-3);
  config_.precision = Precision::kBf16;
  expect_as_one_rank("bf16", {kTwoByTwo}, 3e-3);
}

TEST_F(ShardedRun, SavesWhatEachRankOwnsAndResumesExactly) {
  config_.ckpt.every = {4, DurationUnit::kBatch};
  train_in("straight", kTwo);
  const std::map<int64_t, double> wanted = losses();
  const auto weights = newest_tensors();
  EXPECT_EQ(num_shards(), 2);
  const Json world = find_checkpoint(run_dir()).manifest.at("world");
  EXPECT_EQ(world.at("ranks"), 2);
  EXPECT_EQ(world.at("mesh").at("dp_shard"), 2);
  config_.run_dir = dir_ / "resumed";
  train(kTwo, "7ba");
  train(kTwo);
  EXPECT_EQ(losses(), wanted);
  EXPECT_EQ(newest_tensors(), weights);
}

TEST_F(ShardedRun, CopiesDoNotWriteTwice) {
  config_.max_duration = {2, DurationUnit::kBatch};
  config_.ckpt.every = {1, DurationUnit::kBatch};
  config_.scheduler.value = ConstantConfig{};
  for (const bool async : {true, false}) {
    config_.ckpt.async = async;
    train_in("copies", kTwoByTwo);
    EXPECT_EQ(num_shards(), 2);
    CheckpointReader(find_checkpoint(run_dir())).verify();
    EXPECT_EQ(list_checkpoints(run_dir() + "/checkpoints").size(), 2U);
  }
}

TEST_F(ShardedRun, LoadsOnAnyOtherMeshBitForBit) {
  llama().width = 36, llama().heads = 3, llama().kv_heads = 1, llama().ffn_width = 37,
  llama().vocab_size = 67;
  config_.max_duration = {3, DurationUnit::kBatch};
  config_.ckpt.every = {3, DurationUnit::kBatch};
  config_.scheduler.value = ConstantConfig{};
  const std::vector<TestMesh> all = {kOneRank, kTwo, {2, 1}, {1, 3}, kFour, kTwoByTwo, {1, 5}};
  config_.global_batch = {60, DurationUnit::kSample};
  config_.micro_batch.reset();
  expect_moves("sizes that do not divide", all);
}

}  // namespace
}  // namespace tycho
