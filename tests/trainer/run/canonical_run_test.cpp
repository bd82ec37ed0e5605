// Whole runs with parallel.reduce = "canonical": the same bits on any number of ranks.
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/expression/activation_functions.h"
#include "tests/trainer/run/sharded_fixture.h"

namespace tycho {
namespace {

constexpr TestMesh kReplicas2 = {2, 1}, kReplicas4 = {4, 1}, kReplicas8 = {8, 1}, kShards8 = {1, 8},
                   kMixed8 = {2, 4};

/// All that a run leaves: what each step logs, and every tensor of its last checkpoint.
struct Left {
  std::map<int64_t, std::pair<double, double>> steps;  // loss, and norm of the gradient
  std::map<std::string, std::string> tensors;
};

class CanonicalRun : public ShardedRun {
 protected:
  CanonicalRun() {
    config_.parallel.reduce = GradientOrder::kCanonical;
    config_.max_duration = {6, DurationUnit::kBatch};
    config_.clip.norm = 0.05;  // always clipped
  }

  Left left() const {
    Left all = {.steps = {}, .tensors = newest_tensors()};
    for (const Json& line : lines("metrics.jsonl"))
      if (line.contains("loss")) all.steps[line.at("step")] = {line.at("loss"), line.at("grad_norm")};
    return all;
  }
  /// One rank has two threads, ranks of several have one each.
  Left left_by(const TestMesh& mesh, const std::string& name = "run") {
    config_.threads = mesh.num_ranks() == 1 ? 2 : 1;
    train_in(name, mesh);
    return left();
  }
  static void expect_same_bits(const Left& given, const Left& wanted) {
    EXPECT_EQ(given.steps, wanted.steps);
    ASSERT_EQ(given.tensors.size(), wanted.tensors.size());
    for (const auto& [name, bytes] : wanted.tensors)
      EXPECT_TRUE(given.tensors.at(name) == bytes) << name;  // bytes are no text for people
  }
  void expect_bits_of(const TestMesh& first, const char* what, const std::vector<TestMesh>& meshes) {
    SCOPED_TRACE(what);
    const Left wanted = left_by(first);
    ASSERT_EQ(wanted.steps.size(), static_cast<size_t>(config_.max_duration.count()));
    for (const TestMesh& mesh : meshes) {
      SCOPED_TRACE(mesh.name());
      expect_same_bits(left_by(mesh), wanted);
    }
  }
  void expect_bits_of_one_rank(const char* what, const std::vector<TestMesh>& meshes) {
    expect_bits_of(kOneRank, what, meshes);
  }
  /// The mesh with more ranks that read different data, as replicas, shards and both; eight ranks at most.
  void expect_bits_with_more_data_ranks(const TestMesh& first, const char* what) {
    std::vector<TestMesh> meshes;
    for (const auto& [replicate, shard] : {std::pair{2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}}) {
      TestMesh mesh = first;
      mesh.replicate = replicate, mesh.shard = shard;
      if (mesh.num_ranks() <= 8) meshes.push_back(mesh);
    }
    ASSERT_FALSE(meshes.empty());
    expect_bits_of(first, what, meshes);
  }
};

TEST_F(CanonicalRun, HasTheBitsOfOneRankOnReplicasShardsAndBoth) {
  expect_bits_of_one_rank("Llama, fp32",
                          {kReplicas2, kTwo, kReplicas4, kFour, kTwoByTwo, kReplicas8, kShards8, kMixed8});
}

TEST_F(CanonicalRun, SumsInTheOrderOfRanksOtherwise) {
  config_.parallel.reduce = GradientOrder::kRanks;
  const Left one = left_by(kOneRank);
  EXPECT_NE(left_by(kFour).tensors, one.tensors) << "this test could not fail";
}

TEST_F(CanonicalRun, HasTheBitsOfOneRankInBf16) {
  config_.precision = Precision::kBf16;
  expect_bits_of_one_rank("masters", {kReplicas4, kShards8, kTwoByTwo});
  config_.master_weights = MasterWeights::kNone;
  expect_bits_of_one_rank("none", {kReplicas8, kFour});
  config_.master_weights = MasterWeights::kStochastic;
  expect_bits_of_one_rank("rounded stochastically", {kFour, kMixed8});
}

TEST_F(CanonicalRun, OfMptAndGpt2HasTheBitsOfOneRank) {
  MptConfig mpt;
  mpt.width = 32, mpt.layers = 3, mpt.heads = 4, mpt.vocab_size = 64, mpt.max_seq_len = 16;
  mpt.positions = PositionKind::kAlibi;
  mpt.resid_dropout = 0.2, mpt.embedding_dropout = 0.1;
  config_.model.value = mpt;
  config_.recompute = {Recompute::kFull, 1};
  expect_bits_of_one_rank("MPT with dropout, computed again", {kReplicas8, kFour});
  Gpt2Config gpt2;
  gpt2.width = 32, gpt2.layers = 2, gpt2.heads = 4, gpt2.vocab_size = 64, gpt2.max_seq_len = 16;
  config_.model.value = gpt2;
  config_.precision = Precision::kBf16;
  config_.param_groups = {{.match = "h\\.0\\.", .freeze = true}};
  expect_bits_of_one_rank("GPT-2 in bf16, a block frozen", {kReplicas4, kMixed8});
}

TEST_F(CanonicalRun, HasTheBitsOfOneRankWithOddSizesAndOtherOptimizers) {
  // 24 = 8 x 3: every rank adds runs of three, and the matrices do not divide.
  config_.global_batch = {24, DurationUnit::kSample};
  llama().width = 36, llama().heads = 3, llama().kv_heads = 1, llama().ffn_width = 37,
  llama().vocab_size = 67;
  llama().tied = false;
  config_.optimizer.value = MuonConfig{.lr = 0.02, .adamw_lr = 3e-3};
  expect_bits_of_one_rank("Muon", {kReplicas2, kFour, kMixed8});
  config_.optimizer.value = LionConfig{.lr = 3e-4};
  config_.clip = {.value = 1e-3};
  config_.parallel.reshard_after_forward = false;
  expect_bits_of_one_rank("Lion, clipped by value, parameters kept", {kShards8});
}

TEST_F(CanonicalRun, HasTheBitsOfOneRankWhateverItsThreads) {
  // Large enough for kernels to use several threads.
  write_data(64, 64, 512);
  config_.seq_len = 64;
  config_.micro_batch = Duration{8, DurationUnit::kSample};
  config_.global_batch = {16, DurationUnit::kSample};
  config_.max_duration = {5, DurationUnit::kBatch};
  llama().width = 128, llama().ffn_width = 256, llama().vocab_size = 512;
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    config_.precision = precision;
    expect_bits_of_one_rank("two threads and one", {kReplicas2, kTwo});
  }
}

TestMesh shared_by(int64_t tp, int64_t cp, int64_t pp) { return {.tp = tp, .cp = cp, .pp = pp}; }

TEST_F(CanonicalRun, OfRanksThatShareMatricesHasTheBitsOfFewerThatReadData) {
  // Two ranks have the same key head, and sum its gradient.
  expect_bits_with_more_data_ranks(shared_by(4, 1, 1), "tp 4, with one key head for two ranks");
  TestMesh whole = shared_by(2, 1, 1);
  whole.sequence = false;
  expect_bits_with_more_data_ranks(whole, "tp 2 without sequence parallel");
}

TEST_F(CanonicalRun, OfRanksThatShareSequencesHasTheBitsOfFewerThatReadData) {
  expect_bits_with_more_data_ranks(shared_by(1, 2, 1), "cp 2");
  // 24 = 8 x 3: every rank adds runs of three, and the matrices do not divide.
  config_.global_batch = {24, DurationUnit::kSample};
  config_.precision = Precision::kBf16;
  llama().width = 36, llama().heads = 3, llama().kv_heads = 1, llama().ffn_width = 37,
  llama().vocab_size = 67;
  expect_bits_with_more_data_ranks(shared_by(1, 4, 1), "cp 4, odd sizes, bf16");
}

TEST_F(CanonicalRun, OfStagesHasTheBitsOfFewerRanksThatReadData) {
  llama().layers = 4;
  expect_bits_with_more_data_ranks(shared_by(1, 1, 3), "three stages");
  llama().tied = false;
  config_.parallel.pp_schedule = PipelineSchedule::kInterleaved, config_.parallel.pp_chunks = 2;
  config_.micro_batch = Duration{2, DurationUnit::kSample};
  expect_bits_with_more_data_ranks(shared_by(1, 1, 2), "two stages in two chunks each");
}

TEST_F(CanonicalRun, OfAllAxesHasTheBitsOfFewerRanksThatReadData) {
  expect_bits_with_more_data_ranks(shared_by(2, 2, 1), "tp 2, cp 2");
  expect_bits_with_more_data_ranks(shared_by(1, 2, 2), "cp 2, pp 2");
  config_.optimizer.value = MuonConfig{.lr = 0.02, .adamw_lr = 3e-3};
  expect_bits_with_more_data_ranks(shared_by(2, 1, 2), "tp 2, pp 2, Muon");
}

TEST_F(CanonicalRun, MayChangeItsDataRanksWhileOthersShareTheModel) {
  const TestMesh first = shared_by(2, 2, 1);
  const Left straight = left_by(first, "straight");
  config_.run_dir = dir_ / "moved";
  train(first, "2ba");
  TestMesh more = first;
  more.shard = 2;
  train(more, "3ba");
  train(first, "5ba");
  more.shard = 1, more.replicate = 2;
  train(more);
  expect_same_bits(left(), straight);
}

TEST_F(CanonicalRun, ResumesOnAnotherNumberOfRanks) {
  const Left straight = left_by(kOneRank, "straight");
  config_.run_dir = dir_ / "moved";
  train(kOneRank, "2ba");
  train(kFour, "3ba");
  train(kMixed8, "5ba");
  train(kReplicas2);
  expect_same_bits(left(), straight);
}

TEST_F(CanonicalRun, ResumesWithAnActivationOfTheRecipeOnAnotherMesh) {
  MptConfig model;
  model.width = 32, model.layers = 2, model.heads = 4, model.vocab_size = 64, model.max_seq_len = 16;
  model.ffn = MptFfn::kGlu, model.activation.expression = squared_relu_function();
  config_.model.value = model;
  const Left straight = left_by(kOneRank, "straight");
  config_.run_dir = dir_ / "moved";
  train(kOneRank, "2ba");
  train(kMixed8, "4ba");
  train(kReplicas2);
  expect_same_bits(left(), straight);
  const Json recipe = find_checkpoint(run_dir()).manifest.at("recipe");
  EXPECT_EQ(recipe.at("model").at("activation").at("expression"), squared_relu_function());
}

TEST_F(CanonicalRun, BeginsWithValuesOfTheRecipeOnAnyMesh) {
  const Json value =
      parse_json(R"({"inputs":[{"name":"normal"},{"name":"uniform"}],"nodes":[["input",0],["input",1],
      ["mul",0,1],["number",0.05],["mul",2,3]],"outputs":[{"name":"value","node":4}]})",
                 "test");
  DefinedInitConfig init;
  init.formulas = {{{}, value}};
  for (const char* role : {"embedding", "head", "q", "k", "v", "out", "gate", "up", "down"})
    init.formulas[0].of.push_back({role, 0, 1000});
  config_.max_duration = {3, DurationUnit::kBatch};
  const Left family = left_by(kOneRank, "family");
  config_.init.value = init;
  expect_bits_of_one_rank("own values", {kReplicas2, kShards8, kMixed8});
  EXPECT_NE(left().steps.at(1), family.steps.at(1));
}

TEST_F(CanonicalRun, RefusesMeshesThatCannotKeepTheBits) {
  const auto of_rank_0 = [&](const TestMesh& mesh) { return on_mesh(mesh, [](TrainingSession&) {})[0]; };
  config_.global_batch = {12, DurationUnit::kSample};
  const Ended three = of_rank_0({3, 1});
  EXPECT_EQ(three.code, ExitCode::kTopology);
  EXPECT_NE(three.what.find("and this mesh has 3"), std::string::npos) << three.what;
}

}  // namespace
}  // namespace tycho
