// Plans against published numbers (TorchTitan's Llama 3) and sums done by hand.
#include "trainer/plan/plan.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/plan/planned_llama.h"
#include "trainer/base/error.h"
#include "trainer/data/mds/mds_writer.h"

namespace tycho {
namespace {

TrainConfig llama_1b() {
  TrainConfig config;
  llama(config) = {.width = 2048,
                   .layers = 16,
                   .heads = 32,
                   .kv_heads = 8,
                   .ffn_width = 8192,
                   .vocab_size = 128256,
                   .tied = true};
  return config;
}

TEST(Plan, CountsTheParametersOfLlama3) {
  EXPECT_EQ(make_plan(llama_8b()).num_params, 8030261248);
  EXPECT_EQ(make_plan(llama_8b()).num_matmul_params, 8030261248 - 525336576);
  EXPECT_EQ(make_plan(llama_1b()).num_params, 1235814400);
  EXPECT_EQ(make_plan(llama_1b()).num_matmul_params, 1235814400);
}

TEST(Plan, CountsFlopsAsTorchTitanDoes) {
  const auto full = [](TrainConfig config, int64_t seq_len) {
    config.seq_len = seq_len;
    return make_plan(config).flops_per_token_full;
  };
  EXPECT_NEAR(full(llama_8b(), 2048), 4.82508e10, 5e4);
  EXPECT_NEAR(full(llama_8b(), 8192), 5.79144e10, 5e4);
  EXPECT_NEAR(full(llama_1b(), 2048), 8.22019e9, 5e3);
  EXPECT_NEAR(full(llama_1b(), 8192), 1.06361e10, 5e4);
}

TEST(Plan, HalvesAttentionWhenItIsCausal) {
  const Plan plan = make_plan(llama_8b());
  const double products = 6.0 * static_cast<double>(plan.num_matmul_params);
  EXPECT_DOUBLE_EQ(plan.flops_per_token_causal - products, (plan.flops_per_token_full - products) / 2);
}

TEST(Plan, CountsStepsAndTokens) {
  TrainConfig config;
  config.max_duration = Duration::parse("1e6tok");
  config.micro_batch = Duration::parse("2sp");
  const Plan plan = make_plan(config);
  EXPECT_EQ(plan.tokens_per_step, 8192);
  EXPECT_EQ(plan.steps, 123);
  EXPECT_EQ(plan.tokens, 123 * 8192);
  EXPECT_EQ(plan.micro_batches_per_step, 4);
  EXPECT_EQ(make_plan(config, {.num_ranks = 4}).micro_batches_per_step, 1);
  EXPECT_DOUBLE_EQ(plan.total_flops, plan.flops_per_token_full * 123 * 8192);
}

TEST(Plan, SumsTheMemoryOfTheEngine) {
  const TrainConfig config;  // fp32, 4 blocks, copies for checkpoints
  const Plan plan = make_plan(config);
  const int64_t n = plan.num_params, padding = 6 * 4096;  // one page at most per unit and buffer
  EXPECT_NEAR(item(plan, "parameters").num_bytes, 4 * n, padding);
  EXPECT_NEAR(item(plan, "gradients").num_bytes, 4 * n, padding);
  EXPECT_NEAR(item(plan, "optimizer").num_bytes, 8 * n, 2 * padding);
  EXPECT_NEAR(item(plan, "checkpoint copy").num_bytes, 12 * n, 3 * padding);
  int64_t sum = 0;
  for (const ByteItem& one : plan.memory) sum += one.num_bytes;
  EXPECT_EQ(plan.memory_bytes, sum);
}

TEST(Plan, KeepsMastersForBf16) {
  TrainConfig config;
  config.precision = Precision::kBf16;
  config.ckpt.async = false;
  const Plan plan = make_plan(config);
  EXPECT_NEAR(item(plan, "parameters").num_bytes, 2 * plan.num_params, 6 * 4096);
  EXPECT_NEAR(item(plan, "optimizer").num_bytes, 12 * plan.num_params, 18 * 4096);
  EXPECT_EQ(item(plan, "optimizer").note, "fp32 master, exp_avg, exp_avg_sq");
  EXPECT_THROW(item(plan, "checkpoint copy"), std::runtime_error);
}

TEST(Plan, CountsTheStateThatEachOptimizerKeeps) {
  TrainConfig config;
  config.ckpt.async = false;
  const int64_t n = make_plan(config).num_params;
  const auto bytes_per_param = [&](auto kind) {
    config.optimizer.value = kind;
    return static_cast<double>(make_plan(config).checkpoint_bytes) / static_cast<double>(n);
  };
  EXPECT_EQ(bytes_per_param(DecoupledAdamWConfig{}), 12);
  EXPECT_EQ(bytes_per_param(LionConfig{}), 8);
  EXPECT_EQ(bytes_per_param(SgdConfig{}), 4);
  EXPECT_EQ(bytes_per_param(SgdConfig{.momentum = 0.9}), 8);
  EXPECT_EQ(item(make_plan(config), "optimizer").note, "momentum_buffer");
  const double muon = bytes_per_param(MuonConfig{});
  EXPECT_GT(muon, 8);
  EXPECT_LT(muon, 12);
  EXPECT_EQ(make_plan(config).checkpoint_note, "weights, exp_avg, exp_avg_sq, momentum_buffer in fp32");
  EXPECT_GT(item(make_plan(config), "optimizer scratch").num_bytes, 0);
}

TEST(Plan, CountsNoStateForWhatIsFrozenAndNoMasterWhereThereIsNone) {
  TrainConfig config;
  config.ckpt.async = false;
  const int64_t all = make_plan(config).checkpoint_bytes;
  const int64_t gradients = item(make_plan(config), "gradients").num_bytes;
  config.param_groups = {{.match = "embed_tokens", .freeze = true}};
  const int64_t embedding = llama(config).vocab_size * llama(config).width;
  EXPECT_EQ(make_plan(config).checkpoint_bytes, all - 8 * embedding);
  // The embedding is a unit of its own, so its gradients take no memory.
  EXPECT_NEAR(item(make_plan(config), "gradients").num_bytes, gradients - 4 * embedding, 4096);
  config.param_groups.clear();
  config.precision = Precision::kBf16, config.master_weights = MasterWeights::kStochastic;
  const Plan plan = make_plan(config);
  EXPECT_EQ(item(plan, "optimizer").note, "exp_avg, exp_avg_sq");
  EXPECT_NEAR(item(plan, "optimizer").num_bytes, 8 * plan.num_params, 12 * 4096);
}

TEST(Plan, CountsWhatAttentionTakesOnAGpu) {
  TrainConfig config;
  EXPECT_THROW(item(make_plan(config), "attention"), std::runtime_error);
  config.device = DeviceKind::kCuda, config.precision = Precision::kBf16;
  const Plan plan = make_plan(config);
  EXPECT_GT(item(plan, "attention").num_bytes, 0);
  EXPECT_NE(item(plan, "attention").note.find("while a block is computed"), std::string::npos);
  config.model.value = Gemma2Config();
  EXPECT_TRUE(item(make_plan(config), "attention").note.ends_with("it does not support a soft cap"));
}

TEST(Plan, SaysWhereAttentionEnds) {
  TrainConfig config;
  std::get<MdsConfig>(config.train_data.value).eos_token_id = 7;
  EXPECT_NE(plan_text(make_plan(config), config).find("; attention ends at token 7\n"), std::string::npos);
}

TEST(Plan, NamesAGroupThatMatchesNothing) {
  TrainConfig config;
  config.param_groups = {{.match = "Wqkv"}};
  const std::vector<ConfigProblem> problems = check_parameters(config);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].path, "param_groups[1].match");
  EXPECT_THROW(make_plan(config), Error);
}

TEST(Plan, SumsActivationsByHand) {
  TrainConfig config;
  config.seq_len = 128;
  config.micro_batch = Duration::parse("2sp");
  llama(config) = {.width = 64, .layers = 3, .heads = 4, .kv_heads = 2, .ffn_width = 128, .vocab_size = 1000};
  const Plan plan = make_plan(config);
  const int64_t N = 256, D = 64, E = 64, C = 128, F = 128;
  // Two normed inputs, q k v, the middle of the stream, gate and up; two inverse rms; attention's output and
  // log-sum-exp.
  const int64_t per_block = 4 * N * (3 * D + C + 2 * F) + 4 * 2 * N + 4 * N * E + 4 * N * 4;
  EXPECT_EQ(item(plan, "activations").num_bytes, 3 * per_block);
  EXPECT_EQ(item(plan, "logits chunk").num_bytes, N * 1000 * 4);  // all tokens fit into one chunk
  // With one micro-batch in a step: of two blocks the first normed input and its inverse rms wait in the
  // gradient of the block before, in which q k v have no room; a shorter micro-batch has room for all.
  config.global_batch = Duration::parse("2sp");
  EXPECT_EQ(item(make_plan(config), "activations").num_bytes, 3 * per_block - 2 * 4 * N * (D + 1));
  config.seq_len = 16;
  EXPECT_EQ(item(make_plan(config), "activations").num_bytes, per_block / 8);
  EXPECT_EQ(item(make_plan(config), "logits chunk").num_bytes, 0);
  config.param_groups = {{.match = "layers\\.1\\.mlp", .freeze = true}};
  EXPECT_EQ(item(make_plan(config), "activations").num_bytes, 2 * per_block / 8);
}

TEST(Plan, AGpuMakesLogitsOfThousandsOfTokensAtOnce) {
  TrainConfig config;
  config.seq_len = 2048;
  config.precision = Precision::kBf16;
  config.micro_batch = Duration::parse("4sp");
  llama(config) = {.width = 64, .layers = 1, .heads = 4, .ffn_width = 128, .vocab_size = 128256};
  EXPECT_EQ(item(make_plan(config), "logits chunk").num_bytes,
            256 * 128256 * 2);  // 64 MiB, whole 64s of tokens
  config.device = DeviceKind::kCuda;
  const auto chunk = [&](const char* micro_batch) {
    config.micro_batch = config.global_batch = Duration::parse(micro_batch);
    return item(make_plan(config), "logits chunk").num_bytes / (128256 * 2);
  };
  EXPECT_EQ(chunk("1sp"), 2048) << "there are no more";
  EXPECT_EQ(chunk("4sp"), 4096);
  EXPECT_EQ(chunk("32sp"), 4096);
  EXPECT_EQ(chunk("65sp"), 65 * 2048 / 16) << "a sixteenth of the tokens";
  EXPECT_EQ(chunk("256sp"), 16384);
}

TEST(Plan, CopiesOfAGpuLieOnTheHost) {
  TrainConfig config;
  const Plan on_cpu = make_plan(config);
  config.device = DeviceKind::kCuda;
  const Plan plan = make_plan(config);
  const int64_t bigger_chunk = item(plan, "logits chunk").num_bytes - item(on_cpu, "logits chunk").num_bytes;
  EXPECT_EQ(plan.memory_bytes - plan.estimated_bytes, on_cpu.memory_bytes -
                                                          item(plan, "checkpoint copy").num_bytes +
                                                          item(plan, "attention").num_bytes + bigger_chunk);
}

TEST(Plan, CountsCheckpointsOnDisk) {
  TrainConfig config;  // every 0.1dur of 100 steps
  const auto checkpoints = [&] {
    const Plan plan = make_plan(config);
    return plan.disk_bytes / plan.checkpoint_bytes;
  };
  EXPECT_EQ(make_plan(config).checkpoint_bytes, 12 * make_plan(config).num_params);
  EXPECT_EQ(checkpoints(), 3 + 1);
  config.ckpt.keep = 0;
  EXPECT_EQ(checkpoints(), 10 + 1);
  config.ckpt.every = Duration::parse("30ba");
  EXPECT_EQ(checkpoints(), 4 + 1);  // 30, 60, 90, 100
}

TEST(Plan, WorksWithoutTheData) {
  TrainConfig config;
  std::get<MdsConfig>(config.train_data.value).local_dir = "/nowhere";
  config.max_duration = Duration::parse("2ep");
  const Plan plan = make_plan(config);
  EXPECT_EQ(plan.num_samples, 0);
  EXPECT_EQ(plan.steps, 0);
  EXPECT_NE(plan.data_problem.find("/nowhere"), std::string::npos) << plan.data_problem;
  const std::string text = plan_text(plan, config);
  EXPECT_NE(text.find("epochs of a data set that does not exist"), std::string::npos);
  EXPECT_NE(text.find(plan.data_problem), std::string::npos);
}

TEST(Plan, SaysThatSamplesHaveAnotherLength) {
  const TempDir dir;
  MdsWriter writer(real_files(), dir.path(), {.columns = {{"tokens", "ndarray:int32"}}});
  const std::vector<int32_t> tokens(32, 1);
  writer.write({encode_mds_array(tokens.data(), tokens.size(), sizeof(int32_t))});
  writer.finish();
  TrainConfig config;
  config.train_data.value = MdsConfig{.local_dir = dir.path(), .split = ""};
  config.seq_len = 16;
  EXPECT_NE(make_plan(config).data_problem.find("train_data.recut = true"), std::string::npos);
  config.seq_len = 32;
  EXPECT_EQ(make_plan(config).data_problem, "");
}

TrainConfig llama_8b_over_1e12_tokens() {
  TrainConfig config = llama_8b();
  config.precision = Precision::kBf16;
  config.seq_len = 8192;
  config.global_batch = Duration::parse("4194304tok");
  config.max_duration = Duration::parse("1e12tok");
  return config;
}

TEST(PlanText, IsATableOf80Columns) {
  const TrainConfig config = llama_8b_over_1e12_tokens();
  const std::string text = plan_text(make_plan(config), config);
  std::istringstream lines(text.substr(0, text.find("\n\n")));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  for (const char* part :
       {"8,030,261,248 = 8.03 B", "57.9 GFLOP per token", "parameters            16.1 GB  bf16",
        "optimizer             96.4 GB  fp32 master, exp_avg, exp_avg_sq", "238.4 K steps, 1.00 T tokens"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Plan, EstimatesTheTimeFromThePeakOfAGpu) {
  const TrainConfig config = llama_8b_over_1e12_tokens();
  const Plan plan = make_plan(config, {.num_ranks = 64, .gpu = "H200", .mfu = 0.5});
  EXPECT_NEAR(plan.seconds, 1e12 * 5.79144e10 / (989.5e12 * 0.5 * 64), 2e4);
  EXPECT_NE(plan_text(plan, config).find("at 50.0 % of the peak of 64 H200 (990 TFLOP/s in bf16 each)"),
            std::string::npos)
      << plan_text(plan, config);
  EXPECT_NE(plan_text(plan, config).find("64 ranks' "), std::string::npos) << plan_text(plan, config);
  EXPECT_EQ(make_plan(config).seconds, 0);
  EXPECT_THROW(make_plan(config, {.gpu = "GTX 480"}), Error);
}

TEST(Plan, SaysWhetherARunFitsAGpuAndWhatWould) {
  TrainConfig config = llama_8b_over_1e12_tokens();
  config.micro_batch = Duration::parse("1sp");
  const Plan plan = make_plan(config, {.gpu = "H200"});
  EXPECT_GT(plan.training_bytes, int64_t{139} << 30);
  EXPECT_EQ(plan.fit_note.rfind(
                "more than the 149 GB of one H200: recompute.mode=full master_weights=stochastic takes 1", 0),
            0U)
      << plan.fit_note;
  EXPECT_NE(plan_text(plan, config).find(plan.fit_note), std::string::npos);
  config.recompute.mode = Recompute::kFull, config.master_weights = MasterWeights::kStochastic;
  EXPECT_EQ(make_plan(config, {.gpu = "H200"}).fit_note, "fits into the 149 GB of one H200");
  EXPECT_NE(make_plan(config, {.gpu = "A100 40GB"}).fit_note.find("no setting makes it fit"),
            std::string::npos);
  EXPECT_EQ(make_plan(config, {.gpu = "A100"}).fit_note, "");  // of 40 GB, or of 80
  EXPECT_EQ(make_plan(config).fit_note, "");
}

/// Llama 3 8B as the engine lays it out: embedding and head of 525,336,576, blocks of 218,112,000 numbers;
/// the head has its norm, too.
constexpr int64_t kEmbedding = 525336576, kBlock = 218112000, kHead = kEmbedding + 4096;
constexpr int64_t kAll = kEmbedding + 32 * kBlock + kHead;

TEST(Plan, SharesTheStateOfAModel) {
  TrainConfig config = llama_8b_over_1e12_tokens();
  config.precision = Precision::kBf16;
  config.parallel.dp_shard = 8;
  const Plan plan = make_plan(config, {.num_ranks = 8});
  EXPECT_EQ(plan.mesh, "dp_shard 8");
  const auto expect_near = [&](const char* name, double wanted) {  // buffers are whole pages
    EXPECT_NEAR(static_cast<double>(item(plan, name).num_bytes), wanted, 1e6) << name;
  };
  expect_near("parameters", kAll / 8.0 * 2);
  EXPECT_EQ(item(plan, "whole units").num_bytes, (2 * kBlock + kHead) * 2);
  expect_near("gradients", kAll / 8.0 * 4);
  EXPECT_EQ(item(plan, "whole gradients").num_bytes, (2 * kBlock + kHead) * 4);
  expect_near("optimizer", kAll / 8.0 * 12);
  expect_near("checkpoint copy", kAll / 8.0 * 12);
  EXPECT_EQ(plan.checkpoint_bytes, kAll * 12) << "all ranks' together";
  const Plan whole = make_plan(llama_8b_over_1e12_tokens(), {.num_ranks = 8});
  EXPECT_LT(plan.memory_bytes, whole.memory_bytes / 3);
  config.parallel.reshard_after_forward = false;
  EXPECT_EQ(item(make_plan(config, {.num_ranks = 8}), "whole units").num_bytes, kAll * 2);
  config.parallel.keep_gradients = true;
  EXPECT_EQ(item(make_plan(config, {.num_ranks = 8}), "whole gradients").num_bytes, kAll * 4);
}

TEST(Plan, CountsWhatMovesBetweenRanks) {
  TrainConfig config = llama_8b_over_1e12_tokens();
  config.precision = Precision::kBf16;
  const auto traffic = [&](int64_t ranks) {
    std::map<std::string, int64_t> bytes;
    for (const ByteItem& one : make_plan(config, {.num_ranks = ranks}).traffic)
      bytes[one.name + ": " + one.note] = one.num_bytes;
    return bytes;
  };
  EXPECT_TRUE(traffic(1).empty());
  const std::string across = "dp_replicate: gradients summed over copies, once";
  EXPECT_EQ(traffic(8), (std::map<std::string, int64_t>{{across, 2 * (kAll * 4 / 8 * 7)}}));
  config.parallel.dp_shard = 8;
  config.global_batch = {16, DurationUnit::kSample}, config.micro_batch = Duration::parse("1sp");
  // Two micro-batches on 8 ranks, one on 16. Between two uses of block 31 and of block 32 nothing else is in
  // their buffers, and the embedding's is the head's.
  const int64_t first = kAll + 30 * kBlock, second = kAll + 30 * kBlock - 2 * kBlock;
  EXPECT_EQ(traffic(8),
            (std::map<std::string, int64_t>{{"dp_shard: parameters gathered", (first + second) * 2 / 8 * 7},
                                            {"dp_shard: gradients summed, 2 times", 2 * kAll * 4 / 8 * 7}}));
  EXPECT_EQ(traffic(16),
            (std::map<std::string, int64_t>{{"dp_shard: parameters gathered", first * 2 / 8 * 7},
                                            {"dp_shard: gradients summed, once", kAll * 4 / 8 * 7},
                                            {across, 2 * (kAll / 8 * 4 / 2)}}));
  config.parallel.reshard_after_forward = false, config.parallel.keep_gradients = true;
  EXPECT_EQ(traffic(8),
            (std::map<std::string, int64_t>{{"dp_shard: parameters gathered", kAll * 2 / 8 * 7},
                                            {"dp_shard: gradients summed, once", kAll * 4 / 8 * 7}}));
  config.optimizer.value = MuonConfig{};
  const int64_t matrices = 32 * (kBlock - 2 * 4096);  // all but the norms
  EXPECT_EQ(traffic(8).at("dp_shard: matrices of muon brought together, once"), 2 * (matrices * 4 / 8 * 7));
}

TEST(PlanText, ShowsTheMeshAndWhatMoves) {
  TrainConfig config = llama_8b_over_1e12_tokens();
  config.parallel.dp_shard = 4;
  const std::string text = plan_text(make_plan(config, {.num_ranks = 8}), config);
  EXPECT_NE(text.find("mesh        dp_replicate 2 x dp_shard 4\n"), std::string::npos) << text;
  EXPECT_NE(text.find("received from other ranks per step\n  dp_shard "), std::string::npos) << text;
  EXPECT_NE(text.find("1/4 of every unit"), std::string::npos) << text;
}

TEST(Plan, SuggestsToShareAModelThatDoesNotFit) {
  TrainConfig config = llama_8b_over_1e12_tokens();
  config.precision = Precision::kBf16;
  config.micro_batch = Duration::parse("1sp");
  EXPECT_EQ(make_plan(config, {.num_ranks = 8, .gpu = "H200"})
                .fit_note.rfind("more than the 149 GB of one H200: parallel.dp_shard=-1 takes ", 0),
            0U);
}

TEST(Plan, AdaptersHaveGradientsStateAndCheckpointsAlone) {
  TrainConfig config = llama_8b();
  llama(config).weights = "llama-3-8b";
  config.precision = Precision::kBf16;
  config.model.lora = {.rank = 16, .alpha = 32, .targets = {"q_proj", "v_proj"}};
  // By hand: A and B of q [4096, 4096] and v [1024, 4096] in 32 blocks.
  const int64_t base = 8030261248, adapters = 32 * 16 * (4096 + 4096 + 4096 + 1024);
  const Plan plan = make_plan(config, {});
  EXPECT_EQ(plan.num_params, base + adapters);
  const auto about = [](int64_t given, int64_t wanted) {
    return std::abs(static_cast<double>(given - wanted)) <
           0.001 * static_cast<double>(wanted);  // whole pages
  };
  EXPECT_TRUE(about(item(plan, "parameters").num_bytes, 2 * (base + adapters)));
  EXPECT_TRUE(about(item(plan, "gradients").num_bytes, 4 * adapters));
  EXPECT_TRUE(about(item(plan, "optimizer").num_bytes, 3 * 4 * adapters)) << "master weights and two moments";
  EXPECT_EQ(plan.checkpoint_bytes, 3 * 4 * adapters);
  EXPECT_EQ(plan.checkpoint_note, "adapters, exp_avg, exp_avg_sq in fp32");
}

}  // namespace
}  // namespace tycho
