// Whole runs whose ranks share every matrix: curves, weights and checkpoints are those of one rank.
#include <filesystem>
#include <string>
#include <vector>

#include "tests/trainer/run/sharded_fixture.h"
#include "trainer/huggingface/hf_export.h"

namespace tycho {
namespace {

class TensorParallelRun : public ShardedRun {
 protected:
  static TestMesh whole_sequences(TestMesh mesh) {
    mesh.sequence = false;
    return mesh;
  }
};

TEST_F(TensorParallelRun, HasTheCurveOfOneRank) {
  expect_as_one_rank("tied, two for one key head each",
                     {kTp, whole_sequences(kTp), {1, 1, 4}, whole_sequences({1, 1, 4})});
  llama().tied = false;
  config_.optimizer.value = SgdConfig{.lr = 0.05};
  config_.clip.norm = 0.1;
  expect_as_one_rank("untied, SGD, always clipped", {kTp, whole_sequences({1, 1, 4}), {1, 2, 2}});
}

TEST_F(TensorParallelRun, OfMuonHasTheCurveOfOneRank) {
  config_.optimizer.value = MuonConfig{.lr = 0.02, .adamw_lr = 3e-3};
  expect_as_one_rank("two for one key head each", {kTp, whole_sequences({1, 1, 4}), {1, 2, 2}},
                     muon_tolerance());
}

TEST_F(TensorParallelRun, HasTheCurveOfOneRankTogetherWithOtherAxes) {
  expect_as_one_rank("replicas and shards", {{2, 1, 2}, {1, 2, 2}, whole_sequences({1, 2, 2})});
  config_.recompute = {Recompute::kFull, 1};
  config_.parallel.keep_gradients = true;
  expect_as_one_rank("blocks compute again", {{1, 2, 2}, {1, 1, 4}});
  config_.micro_batch = Duration{2, DurationUnit::kSample};
  config_.recompute = {Recompute::kSelective, 1};
  config_.parallel.reshard_after_forward = false;
  expect_as_one_rank("some of them", {{2, 1, 2}, whole_sequences({1, 2, 2})});
}

TEST_F(TensorParallelRun, HasTheCurveOfOneRankWithSizesThatDoNotDivide) {
  llama().width = 36, llama().heads = 6, llama().kv_heads = 3, llama().ffn_width = 37,
  llama().vocab_size = 67;
  config_.seq_len = 12;
  write_data(256, 12, 64);
  expect_as_one_rank("odd sizes", {{1, 1, 3}, {1, 1, 6}, whole_sequences({1, 1, 3})});
  config_.param_groups = {{.match = "norm", .lr_scale = 0.5}, {.match = "layers\\.0\\.", .freeze = true}};
  expect_as_one_rank("groups and a frozen block", {{1, 1, 3}, whole_sequences({1, 1, 6})});
  config_.clip = {.adaptive = 1e-3};
  expect_as_one_rank("clipped by row", {{1, 1, 3}, whole_sequences({1, 1, 6}), {1, 2, 3}});
}

TEST_F(TensorParallelRun, OfMptAndGpt2HasTheCurveOfOneRank) {
  config_.optimizer.value = SgdConfig{.lr = 0.05};
  MptConfig mpt;
  mpt.width = 32, mpt.layers = 3, mpt.heads = 4, mpt.kv_heads = 2, mpt.vocab_size = 64, mpt.max_seq_len = 16;
  mpt.positions = PositionKind::kAlibi;
  mpt.attn_dropout = 0.1, mpt.resid_dropout = 0.2, mpt.embedding_dropout = 0.1;
  config_.model.value = mpt;
  expect_as_one_rank("MPT with dropout", {kTp, {1, 1, 4}, whole_sequences({2, 1, 2})});
  mpt.qk_ln = true;
  mpt.no_bias = true;  // what is added to all keys changes no softmax: that bias moves by rounding alone
  config_.model.value = mpt;
  expect_as_one_rank("MPT that norms all heads", {kTp, {1, 1, 4}, whole_sequences({1, 1, 4}), {1, 2, 2}});
  Gpt2Config gpt2;
  gpt2.width = 32, gpt2.layers = 2, gpt2.heads = 4, gpt2.vocab_size = 65, gpt2.max_seq_len = 16;
  config_.model.value = gpt2;
  expect_as_one_rank("GPT-2", {{1, 1, 4}, whole_sequences(kTp), {1, 2, 2}});
}

TEST_F(TensorParallelRun, InBf16StaysNearOneRank) {
  config_.precision = Precision::kBf16;
  expect_as_one_rank("fp32 masters", {kTp, whole_sequences(kTp), {1, 2, 2}}, 1e-2);
  config_.master_weights = MasterWeights::kStochastic;
  expect_as_one_rank("rounded stochastically", {kTp, {1, 2, 2}}, 1e-2);
}

TEST_F(TensorParallelRun, SavesWhatEachRankOwnsOnceAndResumesExactly) {
  config_.ckpt.every = {4, DurationUnit::kBatch};
  const TestMesh mesh = {1, 2, 2};
  train_in("straight", mesh);
  const std::map<int64_t, double> wanted = losses();
  const auto weights = newest_tensors();
  EXPECT_EQ(num_shards(), 4);
  CheckpointReader(find_checkpoint(run_dir())).verify();
  EXPECT_EQ(find_checkpoint(run_dir()).manifest.at("world").at("mesh").at("tp"), 2);
  config_.run_dir = dir_ / "resumed";
  train(mesh, "7ba");
  train(mesh);
  EXPECT_EQ(losses(), wanted);
  EXPECT_EQ(newest_tensors(), weights);
}

TEST_F(TensorParallelRun, LoadsOnAnyOtherMeshBitForBit) {
  config_.max_duration = {2, DurationUnit::kBatch};
  config_.ckpt.every = {2, DurationUnit::kBatch};
  config_.scheduler.value = ConstantConfig{};
  llama().vocab_size = 67;
  expect_moves("Llama", {kOneRank, kTwo, kTp, {1, 1, 4}, {1, 2, 2}});
  Gpt2Config gpt2;  // queries, keys and values are columns of one matrix
  gpt2.width = 32, gpt2.layers = 2, gpt2.heads = 4, gpt2.vocab_size = 65, gpt2.max_seq_len = 16;
  config_.model.value = gpt2;
  config_.ckpt.async = false;
  expect_moves("GPT-2", {kOneRank, kTp, {1, 2, 2}});
  MptConfig mpt;  // and here rows, of which two ranks have the same keys
  mpt.width = 32, mpt.layers = 2, mpt.heads = 4, mpt.kv_heads = 2, mpt.vocab_size = 64, mpt.max_seq_len = 16;
  config_.model.value = mpt;
  expect_moves("MPT", {kOneRank, {1, 1, 4}});
}

TEST_F(TensorParallelRun, StartsFromTheWeightsOfAnyMesh) {
  const auto expect_same_on = [&](const char* what, const std::vector<TestMesh>& meshes) {
    SCOPED_TRACE(what);
    const auto wanted = first_weights(kOneRank);
    for (const TestMesh& mesh : meshes) EXPECT_TRUE(first_weights(mesh) == wanted) << mesh.name();
  };
  expect_same_on("drawn", {kTp, {1, 1, 4}, {1, 2, 2}});
  Gpt2Config gpt2;
  gpt2.width = 32, gpt2.layers = 2, gpt2.heads = 4, gpt2.vocab_size = 65, gpt2.max_seq_len = 16;
  config_.model.value = gpt2;
  expect_same_on("drawn, GPT-2", {{1, 1, 4}});
  export_hf(real_files(), CheckpointReader(find_checkpoint(dir_ / kOneRank.name())), dir_ / "folder", {});
  gpt2.weights = dir_ / "folder";
  config_.model.value = gpt2;
  expect_same_on("of a Hugging Face folder", {kTp, {1, 2, 2}});
}

}  // namespace
}  // namespace tycho
