// Whole runs with every optimizer: they learn, and resuming is bit-identical; frozen parameters stay.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/trainer/run/run_fixture.h"
#include "trainer/checkpoint/checkpoint.h"

namespace tycho {
namespace {

std::string checkpoint_at(const std::string& run_dir, int64_t step) {
  for (const CheckpointInfo& info : list_checkpoints(run_dir + "/checkpoints"))
    if (info.step == step) return info.path;
  return "";
}

/// A name, how the optimizer is set up, and where the weights are.
struct Setup {
  std::string name;
  OptimizerConfig optimizer;
  Precision precision = Precision::kFp32;
  MasterWeights master = MasterWeights::kFp32;
};

std::vector<Setup> setups() {
  const auto adamw = AdamWConfig{.lr = 1e-2, .weight_decay = 0.1};
  const auto sgd = SgdConfig{.lr = 0.3, .momentum = 0.9, .nesterov = true};
  const auto muon = MuonConfig{.lr = 2e-2, .adamw_lr = 1e-2};
  const auto lion = DecoupledLionConfig{.lr = 3e-3, .weight_decay = 1e-3};
  return {{"adamw", {adamw}},
          {"decoupled_adamw", {DecoupledAdamWConfig{.lr = 1e-2, .weight_decay = 1e-3}}},
          {"lion", {LionConfig{.lr = 3e-3}}},
          {"decoupled_lionw", {lion}},
          {"sgd", {sgd}},
          {"muon", {muon}},
          {"muon_bf16", {muon}, Precision::kBf16},
          {"lion_bf16", {lion}, Precision::kBf16},
          {"adamw_bf16_in_place", {adamw}, Precision::kBf16, MasterWeights::kNone},
          {"adamw_bf16_stochastic", {adamw}, Precision::kBf16, MasterWeights::kStochastic},
          {"sgd_bf16_stochastic", {sgd}, Precision::kBf16, MasterWeights::kStochastic},
          {"muon_bf16_stochastic", {muon}, Precision::kBf16, MasterWeights::kStochastic}};
}

class OptimizerRunTest : public RunTest, public testing::WithParamInterface<Setup> {};

TEST_P(OptimizerRunTest, LearnsAndResumesBitForBit) {
  write_data(80, 16, 64);
  config_.optimizer = GetParam().optimizer;
  config_.precision = GetParam().precision;
  config_.master_weights = GetParam().master;
  config_.max_duration = {40, DurationUnit::kBatch};
  config_.ckpt.every = {15, DurationUnit::kBatch};
  ASSERT_EQ(run(), 0);
  const auto whole = newest_tensors();
  const auto whole_losses = losses();
  EXPECT_LT(whole_losses.at(40), 0.9 * whole_losses.at(1));

  config_.resume = checkpoint_at(run_dir(), 15);
  config_.run_dir = dir_ / "resumed";
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(newest_tensors(), whole);
  EXPECT_EQ(losses().begin()->first, 16);
  for (const auto& [step, loss] : losses()) EXPECT_EQ(loss, whole_losses.at(step)) << step;
}
INSTANTIATE_TEST_SUITE_P(Setups, OptimizerRunTest, testing::ValuesIn(setups()),
                         [](const auto& info) { return info.param.name; });

TEST_F(RunTest, FrozenParametersStayAsTheyWereAndResume) {
  write_data(40, 16, 64);
  const auto freeze = [](const char* match) { return ParamGroupConfig{.match = match, .freeze = true}; };
  config_.param_groups = {freeze("q_proj"), freeze("embed_tokens")};
  ASSERT_EQ(run(), 0);
  const auto whole = newest_tensors();
  const std::string first = checkpoint_at(run_dir(), 4), frozen = "model.layers.0.self_attn.q_proj.weight";
  EXPECT_EQ(whole.count("optimizer.exp_avg." + frozen), 0u);
  EXPECT_EQ(whole.count("optimizer.exp_avg.model.layers.0.self_attn.k_proj.weight"), 1u);

  config_.resume = first;
  config_.run_dir = dir_ / "resumed";
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(newest_tensors(), whole);

  // Frozen later: the weights of the checkpoint, to the bit.
  config_.param_groups.push_back(freeze("down_proj"));
  config_.run_dir = dir_ / "later";
  ASSERT_EQ(run(), 0);
  const CheckpointReader reader(find_checkpoint(first));
  for (const char* name : {"model.embed_tokens.weight", "model.layers.1.self_attn.q_proj.weight",
                           "model.layers.1.mlp.down_proj.weight"}) {
    std::string bytes(static_cast<size_t>(reader.describe(name).num_bytes), '\0');
    reader.read(name, bytes.data(), static_cast<int64_t>(bytes.size()));
    EXPECT_EQ(newest_tensors().at(name), bytes) << name;
  }

  // What was frozen has no state to go on from.
  config_.param_groups.clear();
  config_.run_dir = dir_ / "thawed";
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kUnusable);
  EXPECT_NE(std::string(error.what()).find("optimizer.exp_avg.model.embed_tokens.weight is missing"),
            std::string::npos);
}

TEST_F(RunTest, WeightsAloneCannotBeResumed) {
  write_data(40, 16, 64);
  config_.optimizer = {SgdConfig{.lr = 0.1}};  // keeps no state
  ASSERT_EQ(run(), 0);
  config_.optimizer = {AdamWConfig{.lr = 1e-3}};
  config_.max_duration.value += 5;
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kUnusable);
  EXPECT_NE(std::string(error.what()).find("has weights but no optimizer state"), std::string::npos);
  EXPECT_NE(std::string(error.what()).find("model.weights="), std::string::npos);
}

TEST_F(RunTest, AGroupThatMatchesNothingStopsTheRun) {
  write_data(40, 16, 64);
  config_.param_groups = {{.match = "Wqkv"}};
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kRecipe);
  EXPECT_NE(std::string(error.what()).find("\"Wqkv\" matches no parameter"), std::string::npos);
}

}  // namespace
}  // namespace tycho
