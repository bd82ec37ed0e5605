// Whole runs whose ranks share each sequence: curves, weights, evaluations and checkpoints are those of one
// rank.
#include <filesystem>
#include <string>
#include <vector>

#include "tests/trainer/run/sharded_fixture.h"

namespace tycho {
namespace {

class ContextParallelRun : public ShardedRun {
 protected:
  static TestMesh with_cp(int64_t cp, TestMesh mesh = {}) {
    mesh.cp = cp;
    return mesh;
  }
  static TestMesh ring(int64_t cp, TestMesh mesh = {}) {
    mesh.ring = true;
    return with_cp(cp, mesh);
  }
  MptConfig mpt() const {
    MptConfig mpt;
    mpt.width = 32, mpt.layers = 3, mpt.heads = 4, mpt.kv_heads = 2, mpt.vocab_size = 64;
    mpt.max_seq_len = 16;
    mpt.positions = PositionKind::kAlibi;
    return mpt;
  }
};

TEST_F(ContextParallelRun, HasTheCurveOfOneRank) {
  expect_as_one_rank("Llama", {with_cp(2), with_cp(4), with_cp(2, {1, 2, 1}), with_cp(2, {2, 1, 1}),
                               with_cp(2, kTp), ring(2), ring(4), ring(2, {1, 2, 1}), ring(2, kTp)});
  config_.micro_batch = Duration{2, DurationUnit::kSample};
  config_.recompute = {Recompute::kFull, 1};
  config_.clip.norm = 0.1;
  expect_as_one_rank("clipped, blocks compute again",
                     {with_cp(2), with_cp(2, {1, 2, 2}), ring(2, {1, 2, 2})});
}

TEST_F(ContextParallelRun, OfMptAndGpt2HasTheCurveOfOneRank) {
  config_.optimizer.value = SgdConfig{.lr = 0.05};
  MptConfig dropped = mpt();
  dropped.attn_dropout = 0.1, dropped.resid_dropout = 0.2, dropped.embedding_dropout = 0.1;
  dropped.sliding_window = 5;
  config_.model.value = dropped;
  expect_as_one_rank("MPT with ALiBi, windows and dropout",
                     {with_cp(2), with_cp(4), with_cp(2, kTp), ring(2), ring(4), ring(2, kTp)});
  Gpt2Config gpt2;
  gpt2.width = 32, gpt2.layers = 2, gpt2.heads = 4, gpt2.vocab_size = 65, gpt2.max_seq_len = 16;
  config_.model.value = gpt2;
  expect_as_one_rank("GPT-2", {with_cp(2), with_cp(2, {1, 2, 1})});
}

TEST_F(ContextParallelRun, OfMuonHasTheCurveOfOneRank) {
  config_.optimizer.value = MuonConfig{.lr = 0.02, .adamw_lr = 3e-3};
  config_.clip = {.adaptive = 1e-3};
  expect_as_one_rank("clipped by row", {with_cp(2), with_cp(2, kTp)}, muon_tolerance());
}

TEST_F(ContextParallelRun, OfAdaptersWithDropoutHasTheCurveOfOneRank) {
  use_adapters({.rank = 2, .alpha = 4, .dropout = 0.2});
  TestMesh stages = with_cp(2);
  stages.pp = 2;
  TestMesh ring_of_stages = stages;
  ring_of_stages.ring = true;
  expect_as_one_rank("dropped inputs",
                     {with_cp(2), with_cp(4), with_cp(2, {1, 2, 1}), stages, ring(4), ring_of_stages});
}

TEST_F(ContextParallelRun, InBf16StaysNearOneRank) {
  config_.precision = Precision::kBf16;
  expect_as_one_rank("fp32 masters", {with_cp(2), with_cp(2, kTp), ring(2), ring(4), ring(2, kTp)}, 1e-2);
}

TEST_F(ContextParallelRun, EvaluatesAsOneRank) {
  config_.scheduler.value = ConstantConfig{};
  config_.max_duration = {1, DurationUnit::kBatch};
  config_.eval_data = {{"held", config_.train_data}};
  config_.eval.batches = 3;
  std::vector<double> losses;
  for (const TestMesh& mesh : {kOneRank, with_cp(2), with_cp(2, {1, 2, 1}), with_cp(2, kTp), ring(2)}) {
    config_.run_dir = dir_ / ("eval-" + mesh.name());
    expect_all_well(on_mesh(mesh, [&](TrainingSession& session) {
      const auto results = session.evaluate("");
      if (session.facts().rank == 0) losses.push_back(results->begin()->second.loss);
    }));
  }
  ASSERT_EQ(losses.size(), 5U);
  for (const double loss : losses) EXPECT_NEAR(loss / losses[0], 1, 1e-6);
}

TEST_F(ContextParallelRun, SavesOnceAndIsResumedByAnyMeshBitForBit) {
  config_.max_duration = {2, DurationUnit::kBatch};
  config_.ckpt.every = {2, DurationUnit::kBatch};
  config_.scheduler.value = ConstantConfig{};
  train_in("from", with_cp(2, {1, 2, 1}));
  const std::string path = find_checkpoint(run_dir()).path;
  const auto wanted = newest_tensors();
  EXPECT_EQ(num_shards(), 4);
  EXPECT_EQ(find_checkpoint(run_dir()).manifest.at("world").at("mesh").at("cp"), 2);
  for (const TestMesh& mesh : {kOneRank, kTwo, with_cp(4), with_cp(2, kTp), ring(4)})
    EXPECT_TRUE(saved_again(path, mesh) == wanted) << mesh.name();
}

}  // namespace
}  // namespace tycho
