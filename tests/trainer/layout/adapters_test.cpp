// Adapters as units: names and shapes as peft's, which layers have some, and what is wrong with targets.
#include "trainer/layout/adapters.h"

#include <gtest/gtest.h>

#include "trainer/layout/decoder_layout.h"
#include "trainer/layout/model_layout.h"

namespace tycho {
namespace {

ModelLayout layout_with(ModelConfig config, LoraConfig lora) {
  config.lora = std::move(lora);
  return model_layout(config);
}

TEST(Adapters, AreSeparateUnitsAfterTheModels) {
  const LlamaConfig llama = {.width = 64, .layers = 3, .heads = 4, .kv_heads = 2, .ffn_width = 96};
  const ModelLayout plain = model_layout({llama});
  const ModelLayout layout =
      layout_with({llama}, {.rank = 8, .targets = {"[01].self_attn.k_proj", "1.mlp..*"}});
  ASSERT_EQ(layout.units.size(), plain.units.size() + 2);
  EXPECT_EQ(num_own_units(layout.units), plain.units.size());
  for (size_t u = 0; u < plain.units.size(); ++u) EXPECT_TRUE(layout.units[u].base);
  const UnitSpec &first = layout.units[5], &second = layout.units[6];
  EXPECT_EQ(first.name, "model.layers.0.lora");
  EXPECT_EQ(first.adapts, 1);
  ASSERT_EQ(first.params.size(), 2U);
  EXPECT_EQ(first.params[0].name, "model.layers.0.self_attn.k_proj.lora_A.weight");
  EXPECT_EQ(first.params[0].shape, (Shape{8, 64}));
  EXPECT_EQ(first.params[1].name, "model.layers.0.self_attn.k_proj.lora_B.weight");
  EXPECT_EQ(first.params[1].shape, (Shape{32, 8}));
  EXPECT_FALSE(first.base);
  EXPECT_EQ(second.adapts, 2);
  EXPECT_EQ(second.params.size(), 8U);
  EXPECT_EQ(layout.num_adapter_params(), 8 * (64 + 32) * 2 + 8 * (64 + 96) * 3);
  EXPECT_EQ(layout.num_matmul_params, plain.num_matmul_params);
  // No gradient of the base is computed: 4 instead of 6 for each of its numbers.
  EXPECT_DOUBLE_EQ(layout.flops_per_token_full(32) - plain.flops_per_token_full(32),
                   6.0 * static_cast<double>(layout.num_adapter_params()) -
                       2.0 * static_cast<double>(plain.num_matmul_params));
}

TEST(Adapters, OfAFusedMatrixAreOne) {
  const ModelLayout layout =
      layout_with({Gpt2Config{.width = 64, .layers = 1, .heads = 4}}, {.rank = 2, .targets = {"c_attn"}});
  EXPECT_EQ(layout.units.back().params[0].shape, (Shape{2, 64}));
  EXPECT_EQ(layout.units.back().params[1].shape, (Shape{192, 2}));
}

TEST(Adapters, TargetsThatMatchNothingAreProblems) {
  ModelConfig config{LlamaConfig{}};
  config.lora = {.rank = 2, .targets = {"q_prj", "lm_head", "q_proj", "(", "elf_attn.q_proj"}};
  const std::vector<ConfigProblem> problems = adapter_problems(decoder_spec(config));
  ASSERT_EQ(problems.size(), 4U);
  EXPECT_EQ(problems[0].path, "lora.targets[1]");
  EXPECT_TRUE(problems[0].message.starts_with("\"q_prj\" matches no linear layer of a block; there are "))
      << problems[0].message;
  EXPECT_NE(problems[0].message.find("; did you mean \"q_proj\""), std::string::npos) << problems[0].message;
  EXPECT_NE(problems[2].message.find("is not a regular expression"), std::string::npos);
  EXPECT_EQ(problems[3].path, "lora.targets[5]") << "a part of a name is not its end";
}

TEST(Adapters, AreScaledByRankOrItsRoot) {
  EXPECT_DOUBLE_EQ((LoraConfig{.rank = 16, .alpha = 32}).scale(), 2);
  EXPECT_DOUBLE_EQ((LoraConfig{.rank = 16, .alpha = 32, .rslora = true}).scale(), 8);
  EXPECT_DOUBLE_EQ((LoraConfig{.rank = 16}).scale(), 1);
}

}  // namespace
}  // namespace tycho
