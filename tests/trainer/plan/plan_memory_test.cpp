// The memory that `tycho plan` says against what a run takes: the engine's arenas and every tensor of
// LibTorch, at their peak. What LibTorch's libraries keep for themselves is not in either number.
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <barrier>
#include <vector>

#include "tests/trainer/run/run_fixture.h"
#include "tests/trainer/run/sharded_fixture.h"
#include "trainer/plan/plan.h"
#include "trainer/sharding/arena.h"

namespace tycho {
namespace {

/// Hears of every tensor that LibTorch allocates and frees on this thread.
class PeakBytes final : public c10::MemoryReportingInfoBase {
 public:
  explicit PeakBytes(bool with_arenas = true) : with_arenas_(with_arenas) {}
  void reportMemoryUsage(void*, int64_t alloc_size, size_t, size_t, c10::Device) override {
    tensors_ += alloc_size;
    peak = std::max(peak, tensors_ + (with_arenas_ ? arena_bytes() : 0));
  }
  bool memoryProfilingEnabled() const override { return true; }

  int64_t peak = 0;

 private:
  const bool with_arenas_;
  int64_t tensors_ = 0;
};

class PlanMemory : public RunTest {
 protected:
  PlanMemory() {
    write_data(16, 64, 1000);
    config_.seq_len = 64;
    config_.max_duration = {2, DurationUnit::kBatch};
    config_.ckpt.every = {1, DurationUnit::kBatch};
    config_.scheduler.value = ConstantConfig{};
    config_.ckpt.async = false;
  }

  void expect_agreement(const char* what) {
    SCOPED_TRACE(what);
    std::filesystem::remove_all(run_dir());
    const auto planned = static_cast<double>(make_plan(config_).memory_bytes);
    const auto peak = std::make_shared<PeakBytes>();
    {
      const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, peak);
      EXPECT_EQ(run(), 0);
    }
    const auto taken = static_cast<double>(peak->peak);
    EXPECT_NEAR(taken / planned, 1.0, 0.05) << planned << " planned, " << taken << " taken";
  }
};

TEST_F(PlanMemory, OfLlamaIsWhatARunTakes) {
  LlamaConfig llama;
  llama.width = 256, llama.layers = 3, llama.heads = 4, llama.kv_heads = 2, llama.ffn_width = 512;
  llama.vocab_size = 2000;
  config_.model.value = llama;
  expect_agreement("fp32, AdamW");
  config_.ckpt.async = true;
  expect_agreement("checkpoints in the background");
  config_.precision = Precision::kBf16;
  config_.recompute = {Recompute::kFull, 1};
  expect_agreement("bf16, computing again");
  config_.optimizer.value = LionConfig{};
  config_.master_weights = MasterWeights::kStochastic;
  expect_agreement("bf16 without a master, Lion");
}

TEST_F(PlanMemory, OfGradientsThatAreSummedAsATreeIsWhatARunTakes) {
  LlamaConfig llama;
  llama.width = 256, llama.layers = 2, llama.heads = 4, llama.ffn_width = 512, llama.vocab_size = 1000;
  config_.model.value = llama;
  config_.parallel.reduce = GradientOrder::kCanonical;
  config_.micro_batch = Duration{1, DurationUnit::kSample};
  expect_agreement("two sums of gradients wait");
}

TEST_F(PlanMemory, OfMptIsWhatARunTakes) {
  MptConfig mpt;
  mpt.width = 256, mpt.layers = 3, mpt.heads = 8, mpt.vocab_size = 2000, mpt.max_seq_len = 64;
  mpt.positions = PositionKind::kAlibi;
  mpt.qk_ln = true, mpt.clip_qkv = 6, mpt.resid_dropout = 0.1;
  config_.model.value = mpt;
  config_.micro_batch = Duration{4, DurationUnit::kSample};
  config_.recompute = {Recompute::kSelective, 2};
  expect_agreement("every other block computing again");
  config_.recompute.mode = Recompute::kNorms;
  expect_agreement("every other block computing its norms again");
  config_.optimizer.value = MuonConfig{};
  expect_agreement("Muon");
}

TEST_F(PlanMemory, OfBlocksThatDifferIsWhatARunTakes) {
  MptConfig mpt;
  mpt.width = 256, mpt.layers = 6, mpt.heads = 8, mpt.kv_heads = 4, mpt.vocab_size = 2000;
  mpt.max_seq_len = 64, mpt.positions = PositionKind::kRope, mpt.qk_gn = true;
  mpt.blocks = {.order = {"default", "again", "far"},
                .kinds = {{"again", {.reuse_kv = 1}},
                          {"far", {.nope = true, .temperature_tuning = {.attn_scale = 0.1}}}}};
  config_.model.value = mpt;
  expect_agreement("keys and values reused");
  config_.precision = Precision::kBf16;
  config_.recompute = {Recompute::kFull, 1};
  expect_agreement("bf16, computing again");
}

TEST_F(PlanMemory, OfGemmaIsWhatARunTakes) {
  Gemma3Config gemma;
  gemma.width = 256, gemma.layers = 3, gemma.heads = 4, gemma.kv_heads = 2, gemma.head_width = 96;
  gemma.ffn_width = 512, gemma.vocab_size = 2000, gemma.sliding_window = 20;
  gemma.layer_types = {LayerType::kSliding, LayerType::kSliding, LayerType::kFull};
  config_.model.value = gemma;
  expect_agreement("norms before and after");
  config_.precision = Precision::kBf16;
  config_.recompute = {Recompute::kFull, 1};
  expect_agreement("bf16, computing again");
}

TEST_F(PlanMemory, OfGpt2IsWhatARunTakes) {
  Gpt2Config gpt2;
  gpt2.width = 256, gpt2.layers = 3, gpt2.heads = 4, gpt2.vocab_size = 2000, gpt2.max_seq_len = 64;
  config_.model.value = gpt2;
  config_.optimizer.value = SgdConfig{};
  expect_agreement("SGD");
  config_.param_groups = {{.match = "wte|wpe|h\\.[01]\\.", .freeze = true}};
  expect_agreement("frozen up to the last block");
}

TEST_F(PlanMemory, OfAdaptersIsWhatARunTakes) {
  LlamaConfig llama;
  llama.width = 256, llama.layers = 3, llama.heads = 4, llama.kv_heads = 2, llama.ffn_width = 512;
  llama.vocab_size = 2000;
  config_.model.value = llama;
  ASSERT_EQ(run(), 0);
  std::get<LlamaConfig>(config_.model.value).weights = run_dir();
  config_.run_dir = dir_ / "adapters";
  config_.model.lora = {.rank = 8};
  expect_agreement("of all layers");
  config_.model.lora = {.rank = 64, .dropout = 0.1, .targets = {"q_proj", "v_proj"}};
  config_.precision = Precision::kBf16;
  config_.recompute = {Recompute::kSelective, 1};
  expect_agreement("of two layers, with dropout, bf16, computing again");
  config_.ckpt.async = true;
  config_.recompute = {Recompute::kFull, 1};
  expect_agreement("checkpoints in the background");
}

/// The same for ranks that are threads and share the parameters.
class ShardedPlanMemory : public ShardedRun {
 protected:
  ShardedPlanMemory() {
    llama().width = 256, llama().layers = 5, llama().heads = 4, llama().ffn_width = 512;
    llama().vocab_size = 1003;
    config_.seq_len = 64;
    write_data(64, 64, 64);
    config_.max_duration = {2, DurationUnit::kBatch};
    config_.scheduler.value = ConstantConfig{};
    config_.ckpt.every = {1, DurationUnit::kBatch};
  }

  /// Their arenas, which are equal, and the tensors of the rank that has most.
  void expect_agreement(int64_t num_ranks) {
    SCOPED_TRACE(num_ranks);
    config_.run_dir = dir_ / "memory";
    std::filesystem::remove_all(run_dir());
    const TestMesh mesh = {.shard = num_ranks};
    mesh.set(config_.parallel);
    const auto planned = static_cast<double>(plan_memory(config_, {.num_ranks = num_ranks}).memory_bytes);
    std::vector<int64_t> tensors(static_cast<size_t>(num_ranks));
    int64_t arenas = 0;
    std::barrier all(num_ranks);
    const int64_t before = arena_bytes();
    expect_all_well(at_places(static_cast<int>(num_ranks), [&](const RankInfo& place) {
      const auto peak = std::make_shared<PeakBytes>(/*with_arenas=*/false);
      const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, peak);
      RunRequest one = request();
      one.place = place;
      const auto session = open_session(one, nullptr, stop_);
      EXPECT_EQ(session->fit(), 0);
      all.arrive_and_wait();
      if (place.rank == 0) arenas = arena_bytes() - before;
      tensors[static_cast<size_t>(place.rank)] = peak->peak;
      all.arrive_and_wait();
    }));
    const double taken = static_cast<double>(arenas) / static_cast<double>(num_ranks) +
                         static_cast<double>(*std::max_element(tensors.begin(), tensors.end()));
    EXPECT_NEAR(taken / planned, 1.0, 0.05) << planned << " planned, " << taken << " taken";
  }
};

TEST_F(ShardedPlanMemory, OfARankIsWhatItTakes) {
  for (const int64_t num_ranks : {1, 2, 4, 8}) expect_agreement(num_ranks);
}

TEST_F(ShardedPlanMemory, OfARankInBf16IsWhatItTakes) {
  config_.precision = Precision::kBf16;
  config_.recompute = {Recompute::kFull, 1};
  for (const int64_t num_ranks : {2, 8}) expect_agreement(num_ranks);
}

}  // namespace
}  // namespace tycho
