// Layouts of Llama against TorchTitan's table of parameters and FLOPs per token, and against Hugging Face's
// names.
#include "trainer/layout/model_layout.h"

#include <gtest/gtest.h>

#include <set>

namespace tycho {
namespace {

struct Llama3 {
  const char* name;
  LlamaConfig config;
  int64_t num_params, num_embedding;  // 0 when the table is shared with the head
  double flops_2048, flops_8192;
};

const Llama3 kLlama3[] = {
    {"debug",
     {.width = 256, .layers = 6, .heads = 16, .ffn_width = 768, .vocab_size = 2048},
     6163712,
     524288,
     7.15853e7,
     1.84831e8},
    {"1B",
     {.width = 2048,
      .layers = 16,
      .heads = 32,
      .kv_heads = 8,
      .ffn_width = 8192,
      .vocab_size = 128256,
      .tied = true},
     1235814400,
     0,
     8.22019e9,
     1.06361e10},
    {"3B",
     {.width = 3072,
      .layers = 28,
      .heads = 24,
      .kv_heads = 8,
      .ffn_width = 8192,
      .vocab_size = 128256,
      .tied = true},
     3212749824,
     0,
     2.13905e10,
     2.77322e10},
    {"8B",
     {.width = 4096, .layers = 32, .heads = 32, .kv_heads = 8, .ffn_width = 14336, .vocab_size = 128256},
     8030261248,
     525336576,
     4.82508e10,
     5.79144e10},
    {"70B",
     {.width = 8192, .layers = 80, .heads = 64, .kv_heads = 8, .ffn_width = 28672, .vocab_size = 128256},
     70553706496,
     1050673152,
     4.33124e11,
     4.81443e11},
    {"405B",
     {.width = 16384, .layers = 126, .heads = 128, .kv_heads = 8, .ffn_width = 53248, .vocab_size = 128256},
     405853388800,
     2101346304,
     2.47325e12,
     2.62545e12},
};

TEST(ModelLayout, CountsTheParametersOfLlama3) {
  for (const Llama3& llama : kLlama3) {
    const ModelLayout layout = model_layout({llama.config});
    EXPECT_EQ(layout.num_params(), llama.num_params) << llama.name;
    EXPECT_EQ(layout.num_matmul_params, llama.num_params - llama.num_embedding) << llama.name;
  }
}

TEST(ModelLayout, CountsFlopsAsTorchTitanDoes) {
  for (const Llama3& llama : kLlama3) {
    const ModelLayout layout = model_layout({llama.config});
    // The table has six digits.
    EXPECT_NEAR(layout.flops_per_token_full(2048) / llama.flops_2048, 1, 1e-5) << llama.name;
    EXPECT_NEAR(layout.flops_per_token_full(8192) / llama.flops_8192, 1, 1e-5) << llama.name;
    const double products = 6.0 * static_cast<double>(layout.num_matmul_params);
    EXPECT_DOUBLE_EQ(layout.flops_per_token_causal(2048) - products,
                     (layout.flops_per_token_full(2048) - products) / 2);
  }
}

TEST(ModelLayout, NamesParametersAsHuggingFaceDoes) {
  const ModelLayout layout = model_layout({LlamaConfig{.layers = 2, .kv_heads = 2}});
  std::set<std::string> names;
  for (const UnitSpec& unit : layout.units) {
    for (const ParamSpec& param : unit.params) names.insert(param.name);
  }
  std::set<std::string> wanted = {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"};
  for (const char* layer : {"model.layers.0.", "model.layers.1."}) {
    for (const char* param :
         {"input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
          "post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
      wanted.insert(std::string(layer) + param + ".weight");
    }
  }
  EXPECT_EQ(names, wanted);
}

TEST(ModelLayout, TiedModelsHaveNoSecondTable) {
  const ModelLayout layout = model_layout({LlamaConfig{.tied = true}});
  for (const ParamSpec& param : layout.units.back().params) EXPECT_NE(param.name, "lm_head.weight");
  EXPECT_TRUE(layout.tied);
}

TEST(ModelLayout, DecaysMatricesOnly) {
  for (const UnitSpec& unit : model_layout({LlamaConfig{}}).units) {
    for (const ParamSpec& param : unit.params) EXPECT_EQ(param.decay, param.shape.size() == 2) << param.name;
  }
}

}  // namespace
}  // namespace tycho
