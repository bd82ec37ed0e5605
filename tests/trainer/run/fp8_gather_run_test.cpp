// Whole runs that gather codes of fp8: every number, and every byte of a checkpoint, is that of a run which
// gathers bf16.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/run/sharded_fixture.h"
#include "trainer/plan/plan.h"

namespace tycho {
namespace {

class Fp8GatherRun : public ShardedRun {
 protected:
  Fp8GatherRun() {
    llama().width = 64, llama().ffn_width = 96;
    config_.precision = Precision::kBf16;
    config_.model.fp8.recipe = Fp8Recipe::kTensorwise;
    config_.max_duration = {6, DurationUnit::kBatch};
    config_.ckpt.every = {6, DurationUnit::kBatch};
  }
  void evaluate() {
    config_.eval_data = {{"held", config_.train_data}};
    config_.eval.every = Duration::parse("2ba");
    config_.eval.batches = 2;
  }
  /// Losses of steps and of evaluations, and the newest checkpoint.
  using Result = std::pair<std::vector<std::string>, std::map<std::string, std::string>>;
  Result result(bool gather, const TestMesh& mesh) {
    config_.model.fp8.gather = gather;
    train_in(gather ? "codes" : "bf16", mesh);
    return newest();
  }
  Result newest() {
    std::vector<std::string> numbers;
    for (const Json& line : lines("metrics.jsonl"))
      for (const auto& [key, value] : line.items())
        if (key.find("loss") != std::string::npos || key.find("norm") != std::string::npos)
          numbers.push_back(key + " " + value.dump());
    return {numbers, newest_tensors()};
  }
  /// True if all blocks travel as codes, by the plan.
  bool gathers_codes(const TestMesh& mesh) {
    mesh.set(config_.parallel);
    const Plan plan = make_plan(config_, {.num_ranks = mesh.num_ranks()});
    return std::any_of(plan.traffic.begin(), plan.traffic.end(), [](const ByteItem& item) {
      return item.note.find(" units as codes of fp8") != std::string::npos &&
             item.note.find(", 0 of") == std::string::npos;
    });
  }
  void expect_same_bits(const char* what, const std::vector<TestMesh>& meshes) {
    SCOPED_TRACE(what);
    for (const TestMesh& mesh : meshes) {
      SCOPED_TRACE(mesh.name());
      const Result bf16 = result(false, mesh), codes = result(true, mesh);
      EXPECT_GE(bf16.first.size(), 6U);
      EXPECT_TRUE(gathers_codes(mesh));
      EXPECT_EQ(codes.first, bf16.first);
      EXPECT_TRUE(codes.second == bf16.second);
    }
  }
};

TEST_F(Fp8GatherRun, HasTheBitsOfOneThatGathersBf16) {
  evaluate();
  expect_same_bits("evaluated between steps", {kTwo, kFour, kTwoByTwo, {1, 2, 2}});
  expect_same_bits("along cp and pp", {{.cp = 2}, {.shard = 2, .cp = 2}, {.shard = 2, .pp = 2}});
  config_.recompute = {Recompute::kFull, 1};
  config_.parallel.keep_gradients = true;
  expect_same_bits("blocks compute again", {kTwo, {.shard = 2, .tp = 2, .sequence = false}});
  config_.parallel.reshard_after_forward = false;
  config_.master_weights = MasterWeights::kNone;
  expect_same_bits("weights trained in place", {kFour});
}

TEST_F(Fp8GatherRun, OfMuonAndAnAverageHasTheSameBits) {
  evaluate();
  config_.ema.half_life = Duration::parse("5ba");
  config_.ema.evaluate = true;
  config_.optimizer.value = MuonConfig{.lr = 0.02, .adamw_lr = 3e-3};
  expect_same_bits("the average is evaluated", {kTwo, {1, 2, 2}});
}

TEST_F(Fp8GatherRun, OfAdaptersHasTheSameBits) {
  config_.model.fp8 = {};
  use_adapters({.rank = 4, .alpha = 8, .dropout = 0.1});
  config_.model.fp8.recipe = Fp8Recipe::kTensorwise;
  config_.max_duration = {6, DurationUnit::kBatch};
  expect_same_bits("frozen weights are codes", {kTwo, {1, 2, 2}});
}

TEST_F(Fp8GatherRun, ResumesExactlyAndMayChangeItsGather) {
  const Result whole = result(true, kTwoByTwo);
  config_.ckpt.every = {3, DurationUnit::kBatch};
  config_.run_dir = dir_ / "parts";
  train(kTwoByTwo, "3ba");
  config_.model.fp8.gather = false;
  train(kTwoByTwo);
  EXPECT_TRUE(newest().second == whole.second);
}

TEST_F(Fp8GatherRun, TakesTheMemoryThatThePlanAdds) {
  for (const TestMesh& mesh : {kTwo, kFour, TestMesh{1, 2, 2}}) {
    config_.model.fp8.gather = false;
    const int64_t plain = trained_arena_bytes(mesh);
    config_.model.fp8.gather = true;
    const int64_t more = trained_arena_bytes(mesh) - plain;
    const Plan plan = make_plan(config_, {.num_ranks = mesh.num_ranks()});
    const auto codes = std::find_if(plan.memory.begin(), plan.memory.end(),
                                    [](const ByteItem& item) { return item.name == "codes"; });
    ASSERT_NE(codes, plan.memory.end());
    EXPECT_EQ(more, mesh.num_ranks() * codes->num_bytes) << mesh.name();
  }
}

TEST_F(Fp8GatherRun, OnOneRankGathersNothing) {
  const Result bf16 = result(false, kOneRank), codes = result(true, kOneRank);
  EXPECT_EQ(codes.first, bf16.first);
  EXPECT_TRUE(codes.second == bf16.second);
}

}  // namespace
}  // namespace tycho
