// Whole runs whose ranks have a stage of the model each: curves, weights and checkpoints are those of one
// rank.
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "tests/trainer/run/sharded_fixture.h"
#include "trainer/huggingface/peft_export.h"
#include "trainer/plan/plan.h"

namespace tycho {
namespace {

/// Stages, and ranks along the other axes.
TestMesh staged(int64_t pp, int64_t replicate = 1, int64_t shard = 1, int64_t tp = 1) {
  return {.replicate = replicate, .shard = shard, .tp = tp, .pp = pp};
}

class PipelineRun : public ShardedRun {
 protected:
  PipelineRun() { llama().layers = 4; }
  ParallelConfig& parallel() { return config_.parallel; }
  void make_short_runs();
  void expect_shown_as_by_one_rank(const std::vector<TestMesh>& meshes);
};

void PipelineRun::make_short_runs() {
  config_.max_duration = {2, DurationUnit::kBatch};
  config_.ckpt.every = {2, DurationUnit::kBatch};
  config_.scheduler.value = ConstantConfig{};
}

TEST_F(PipelineRun, HasTheCurveOfOneRank) {
  expect_as_one_rank("tied", {staged(2), staged(4)});
  parallel().pp_schedule = PipelineSchedule::kGpipe;
  llama().tied = false;
  config_.optimizer.value = SgdConfig{.lr = 0.05};
  config_.clip.norm = 0.1;
  expect_as_one_rank("untied, SGD, always clipped, gpipe", {staged(2), staged(3)});
}

TEST_F(PipelineRun, HasTheCurveOfOneRankInSeveralChunks) {
  const auto in_chunks = [&](const char* what, const TestMesh& mesh) {
    SCOPED_TRACE(what);
    train_in("one", kOneRank);
    const std::map<int64_t, double> wanted = losses();
    const auto weights = newest_tensors();
    parallel().pp_schedule = PipelineSchedule::kInterleaved, parallel().pp_chunks = 2;
    train_in("several", mesh);
    for (const auto& [step, loss] : wanted) EXPECT_NEAR(losses().at(step) / loss, 1, 1e-6) << step;
    expect_close(newest_tensors(), weights, 1e-6);
    parallel().pp_schedule = PipelineSchedule::k1f1b, parallel().pp_chunks = 1;
  };
  in_chunks("two stages", staged(2));
  llama().layers = 7;
  config_.recompute = {Recompute::kFull, 1};
  in_chunks("three stages of blocks that compute again", staged(3));
}

TEST_F(PipelineRun, HasTheCurveOfOneRankTogetherWithOtherAxes) {
  expect_as_one_rank("replicas, shards and shared matrices",
                     {staged(2, 2), staged(2, 1, 2), staged(2, 1, 1, 2), staged(2, 1, 2, 2)});
  TestMesh sequences = staged(2);
  sequences.cp = 2;
  TestMesh all = staged(2, 1, 1, 2);
  all.cp = 2;
  expect_as_one_rank("shared sequences", {sequences, all});
  config_.micro_batch = Duration{2, DurationUnit::kSample};
  config_.recompute = {Recompute::kSelective, 1};
  config_.param_groups = {{.match = "norm", .lr_scale = 0.5}, {.match = "layers\\.[01]\\.", .freeze = true}};
  parallel().keep_gradients = true;
  expect_as_one_rank("groups and frozen blocks", {staged(2), staged(3, 1, 2)});
}

TEST_F(PipelineRun, HasTheCurveOfOneRankWithUnequalStages) {
  const auto by_hand = [&](const TestMesh& mesh, const std::vector<int64_t>& layers) {
    train_in("one", kOneRank);
    const std::map<int64_t, double> wanted = losses();
    parallel().pp_layers = layers;
    train_in("several", mesh);
    for (const auto& [step, loss] : wanted) EXPECT_NEAR(losses().at(step) / loss, 1, 1e-6) << step;
    parallel().pp_layers.clear();
  };
  by_hand(staged(2), {3, 1});
  by_hand(staged(3), {1, 1, 2});
}

TEST_F(PipelineRun, OfMptAndGpt2HasTheCurveOfOneRank) {
  config_.optimizer.value = SgdConfig{.lr = 0.05};
  MptConfig mpt;
  mpt.width = 32, mpt.layers = 4, mpt.heads = 4, mpt.kv_heads = 2, mpt.vocab_size = 64, mpt.max_seq_len = 16;
  mpt.positions = PositionKind::kAlibi;
  mpt.attn_dropout = 0.1, mpt.resid_dropout = 0.2, mpt.embedding_dropout = 0.1;
  config_.model.value = mpt;
  expect_as_one_rank("MPT with dropout", {staged(2), staged(4), staged(2, 2)});
  Gpt2Config gpt2;  // tied, with a table of positions
  gpt2.width = 32, gpt2.layers = 3, gpt2.heads = 4, gpt2.vocab_size = 65, gpt2.max_seq_len = 16;
  config_.model.value = gpt2;
  expect_as_one_rank("GPT-2", {staged(2), staged(3), staged(2, 1, 2), staged(2, 1, 1, 2)});
}

TEST_F(PipelineRun, OfAdaptersHasTheCurveOfOneRank) {
  use_adapters({.rank = 2, .alpha = 4, .dropout = 0.1});
  expect_as_one_rank("of all layers", {staged(2), staged(4), staged(2, 1, 2), staged(2, 2)});
  config_.model.lora.targets = {"layers.[02].self_attn..*", "layers.2.mlp.down_proj"};
  config_.recompute = {Recompute::kFull, 1};
  expect_as_one_rank("of some, which one of four stages has none of", {staged(2), staged(4)});
  config_.model.lora.targets = {"layers.1..*"};
  config_.model.lora.dropout = 0;
  expect_as_one_rank("of one block", {staged(2), staged(4), staged(2, 1, 2), staged(2, 1, 1, 2)});
}

TEST_F(PipelineRun, InBf16StaysNearOneRank) {
  config_.precision = Precision::kBf16;
  expect_as_one_rank("fp32 masters", {staged(2), staged(2, 1, 2)}, 1e-2);
}

TEST_F(PipelineRun, WithMuonHasTheCurveOfOneRank) {
  // The gradient of a tied embedding is the sum of two stages, so it is rounded in another order than on one
  // rank. Where Muon iterates in bf16, that grows as much as with another micro-batch on one rank.
  config_.optimizer.value = MuonConfig{.lr = 0.02, .adamw_lr = 3e-3};
  expect_as_one_rank("tied", {staged(2), staged(4), staged(2, 1, 2)}, muon_tolerance());
  llama().tied = false;  // no sum is made in another order
  config_.optimizer.value = MuonConfig{};
  expect_as_one_rank("untied", {staged(2)}, 1e-5);
}

TEST_F(PipelineRun, SavesEveryTensorOnceAndResumesExactly) {
  config_.ckpt.every = {4, DurationUnit::kBatch};
  const TestMesh mesh = staged(2, 2);
  train_in("straight", mesh);
  const std::map<int64_t, double> wanted = losses();
  const auto weights = newest_tensors();
  EXPECT_EQ(num_shards(), 2) << "one copy of the model writes";
  CheckpointReader(find_checkpoint(run_dir())).verify();
  EXPECT_EQ(find_checkpoint(run_dir()).manifest.at("world").at("mesh").at("pp"), 2);
  config_.run_dir = dir_ / "resumed";
  train(mesh, "7ba");
  train(mesh);
  EXPECT_EQ(losses(), wanted);
  EXPECT_EQ(newest_tensors(), weights);
}

TEST_F(PipelineRun, LoadsOnAnyOtherMeshBitForBit) {
  make_short_runs();
  expect_moves("Llama", {kOneRank, staged(2), staged(4), staged(2, 1, 2), staged(2, 1, 1, 2)});
  Gpt2Config gpt2;
  gpt2.width = 32, gpt2.layers = 3, gpt2.heads = 4, gpt2.vocab_size = 65, gpt2.max_seq_len = 16;
  config_.model.value = gpt2;
  config_.ckpt.state = CheckpointState::kFull;
  expect_moves("GPT-2, one file", {kOneRank, staged(3), staged(2, 1, 2)});
}

TEST_F(PipelineRun, LoadsAdaptersOnAnyOtherMeshAndExportsThem) {
  use_adapters({.rank = 2, .alpha = 4, .targets = {"layers.[12]..*"}});
  make_short_runs();
  expect_moves("adapters", {kOneRank, staged(2), staged(4), staged(2, 1, 2), staged(2, 1, 1, 2)});
  const auto exported = [&](const TestMesh& mesh) {
    const std::string to = dir_ / ("peft-" + mesh.name());
    export_adapters(real_files(), CheckpointReader(find_checkpoint(run_dir())), to);
    return read_file(to + "/adapter_model.safetensors");
  };
  train_in("four stages", staged(4));
  const std::string from_four = exported(staged(4));
  saved_again(find_checkpoint(run_dir()).path, kOneRank);
  EXPECT_EQ(exported(kOneRank), from_four);
}

TEST_F(PipelineRun, StartsFromTheWeightsOfOneRank) {
  const auto wanted = first_weights(kOneRank);
  for (const TestMesh& mesh : {staged(2), staged(4), staged(2, 1, 2)})
    EXPECT_TRUE(first_weights(mesh) == wanted) << mesh.name();
}

TEST_F(PipelineRun, TakesTheMemoryThatWasPlanned) {
  llama().width = 256, llama().heads = 4, llama().ffn_width = 512, llama().tied = false;
  config_.seq_len = 64;
  write_data(64, 64, 64);
  config_.max_duration = {2, DurationUnit::kBatch};
  config_.scheduler.value = ConstantConfig{};
  config_.ckpt.every = {1, DurationUnit::kBatch};
  parallel().pp_schedule = PipelineSchedule::kGpipe;  // stages have the same, but for embedding and head
  for (const TestMesh& mesh : {staged(2), staged(4), staged(2, 1, 2)}) {
    SCOPED_TRACE(mesh.name());
    mesh.set(parallel());
    const Plan plan = plan_memory(config_, {.num_ranks = mesh.num_ranks()});
    const auto taken = static_cast<double>(trained_arena_bytes(mesh));
    const double planned = static_cast<double>(plan.memory_bytes * mesh.num_ranks());
    EXPECT_LE(taken, 1.01 * planned) << memory_table(plan);
    EXPECT_GE(taken, 0.93 * planned) << memory_table(plan);
  }
}

void PipelineRun::expect_shown_as_by_one_rank(const std::vector<TestMesh>& meshes) {
  config_.eval_data = {{"held", config_.train_data}};
  config_.eval.every = {10, DurationUnit::kBatch};
  config_.max_duration = {2, DurationUnit::kBatch};
  std::mutex mutex;
  struct Seen {
    double loss = 0;
    std::vector<double> logits, weights, gradients;
    std::vector<std::vector<double>> activations;
  };
  const auto seen_by = [&](const TestMesh& mesh) {
    std::vector<Seen> all;
    config_.run_dir = dir_ / ("seen-" + mesh.name());
    std::filesystem::remove_all(run_dir());
    expect_all_well(on_mesh(mesh, [&](TrainingSession& session) {
      session.step(2);
      Seen seen;
      seen.loss = session.evaluate("")->begin()->second.loss;
      seen.logits = session.logits({1, 2, 3}, /*every_position=*/false)->values();
      for (const auto& one : session.activations({1, 2, 3})) seen.activations.push_back(one->values());
      for (int64_t p = 0; p < std::ssize(session.params()); ++p) {
        for (const double x : session.weight(p)->values()) seen.weights.push_back(x);
        if (const auto gradient = session.grad(p))  // null where nothing is trained
          for (const double x : gradient->values()) seen.gradients.push_back(x);
      }
      const std::lock_guard lock(mutex);
      all.push_back(std::move(seen));
    }));
    return all;
  };
  const auto expect_near = [](const std::vector<double>& given, const std::vector<double>& wanted) {
    ASSERT_EQ(given.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(given[i], wanted[i], 1e-4) << i;
  };
  const std::vector<Seen> alone = seen_by(kOneRank);
  ASSERT_EQ(alone.size(), 1U);
  const Seen& wanted = alone.front();
  for (const TestMesh& mesh : meshes)
    for (const Seen& given : seen_by(mesh)) {  // on every rank
      SCOPED_TRACE(mesh.name());
      EXPECT_NEAR(given.loss / wanted.loss, 1, 1e-6);
      expect_near(given.logits, wanted.logits);
      expect_near(given.weights, wanted.weights);
      expect_near(given.gradients, wanted.gradients);
      ASSERT_EQ(given.activations.size(), wanted.activations.size());
      for (size_t i = 0; i < wanted.activations.size(); ++i)
        expect_near(given.activations[i], wanted.activations[i]);
    }
}

TEST_F(PipelineRun, EvaluatesAndShowsWhatOneRankDoes) {
  expect_shown_as_by_one_rank({staged(2), staged(3), staged(2, 1, 2), staged(2, 1, 1, 2)});
}

TEST_F(PipelineRun, EvaluatesAndShowsAdaptersAsOneRankDoes) {
  use_adapters({.rank = 2, .alpha = 4, .targets = {"layers.[12]..*"}});
  expect_shown_as_by_one_rank({staged(2), staged(4)});
}

}  // namespace
}  // namespace tycho
