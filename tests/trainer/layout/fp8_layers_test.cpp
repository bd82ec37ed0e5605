// The linear layers that multiply in fp8: which, what is said of the others, and what is wrong with a choice.
#include "trainer/layout/fp8_layers.h"

#include <gtest/gtest.h>

#include "trainer/layout/decoder_layout.h"
#include "trainer/layout/tp_parts.h"

namespace tycho {
namespace {

DecoderSpec spec_with(Fp8Config fp8,
                      LlamaConfig llama = {
                          .width = 64, .layers = 2, .heads = 4, .kv_heads = 2, .ffn_width = 96}) {
  ModelConfig config{llama};
  config.fp8 = std::move(fp8);
  return decoder_spec(config);
}
std::string problem_with(const Fp8Config& fp8, int64_t tp = 1) {
  std::string text;
  for (const ConfigProblem& problem : fp8_problems(spec_with(fp8), tp))
    text += problem.path + ": " + problem.message + "\n";
  return text;
}

TEST(Fp8Layers, AreProductsOfOneOrMoreLayers) {
  EXPECT_TRUE(block_params(spec_with({}), 0).fp8.empty());
  const DecoderSpec spec = spec_with({.recipe = Fp8Recipe::kRowwise});
  const BlockParams at = block_params(spec, 1);
  ASSERT_EQ(at.fp8.size(), 4U);
  for (const Fp8Product& product : at.fp8) {
    const std::vector<int64_t> wanted = product.view == at.qkv_weight  ? std::vector<int64_t>{64, 32, 32}
                                        : product.view == at.up_weight ? std::vector<int64_t>{96, 96}
                                                                       : std::vector<int64_t>{64};
    EXPECT_EQ(product.outputs, wanted);
    EXPECT_EQ(product.inputs, product.view == at.down_weight ? 96 : 64);
    EXPECT_EQ(product.recipe, Fp8Recipe::kRowwise);
    EXPECT_EQ(product.cast_along, product.view != at.out_weight);  // after norms and SwiGLU, not attention
  }
  EXPECT_EQ(fp8_text(spec),
            "14 of 14 linear layers of the blocks multiply in fp8 (rowwise); the head multiplies in bf16");
  EXPECT_EQ(fp8_text(spec_with({})), "");
}

TEST(Fp8Layers, OfFusedMatricesOfFilesHaveOneScale) {
  ModelConfig config{Gpt2Config{.width = 64, .layers = 1, .heads = 4}};
  config.fp8.recipe = Fp8Recipe::kTensorwise;
  const BlockParams at = block_params(decoder_spec(config), 0);
  for (const Fp8Product& product : at.fp8) EXPECT_EQ(product.outputs.size(), 1U);
  EXPECT_EQ(at.fp8.size(), 4U);
}

TEST(Fp8Layers, AreSkippedByPartsOfTheirNames) {
  const DecoderSpec spec =
      spec_with({.recipe = Fp8Recipe::kTensorwise, .skip = {"layers.0.", "down_proj", "lm_head"}});
  EXPECT_TRUE(block_params(spec, 0).fp8.empty());
  EXPECT_EQ(block_params(spec, 1).fp8.size(), 3U);
  EXPECT_TRUE(fp8_problems(spec, 1).empty());
  EXPECT_EQ(fp8_text(spec),
            "6 of 14 linear layers of the blocks multiply in fp8 (tensorwise); bf16: q_proj, k_proj, v_proj, "
            "o_proj, "
            "gate_proj, up_proj, down_proj (fp8.skip); the head multiplies in bf16");
}

TEST(Fp8Layers, AreGatheredAsCodesIfAskedFor) {
  Fp8Config fp8 = {.recipe = Fp8Recipe::kTensorwise, .skip = {"down_proj"}};
  const auto coded = [&] {
    std::vector<std::string> names;
    for (const ParamSpec& param : decoder_layout(spec_with(fp8)).units[1].params)
      if (param.coded) names.push_back(param.name.substr(std::string("model.layers.0.").size()));
    return names;
  };
  EXPECT_TRUE(coded().empty());
  fp8.gather = true;
  EXPECT_EQ(coded(), (std::vector<std::string>{"self_attn.q_proj.weight", "self_attn.k_proj.weight",
                                               "self_attn.v_proj.weight", "self_attn.o_proj.weight",
                                               "mlp.gate_proj.weight", "mlp.up_proj.weight"}));
  EXPECT_TRUE(fp8_text(spec_with(fp8)).ends_with("multiplies in bf16; parallel.dp_shard gathers codes"));
  // Factors of the unit's own views follow those of adapters.
  const UnitSpec unit = decoder_layout(spec_with(fp8)).units[1];
  const auto num_views = static_cast<int>(unit.params.size() + unit.stacks.size());
  for (const Fp8Product& product : block_params(spec_with(fp8), 0).fp8)
    EXPECT_EQ(product.factors, num_views + product.view);
}

TEST(Fp8Layers, NeedDimsThatAreMultiplesOf16) {
  const DecoderSpec spec = spec_with({.recipe = Fp8Recipe::kRowwise},
                                     {.width = 64, .layers = 1, .heads = 4, .kv_heads = 4, .ffn_width = 100});
  EXPECT_EQ(fp8_text(spec),
            "4 of 7 linear layers of the blocks multiply in fp8 (rowwise); bf16: gate_proj, up_proj, "
            "down_proj (a dim is "
            "not a multiple of 16); the head multiplies in bf16");
}

TEST(Fp8Layers, SmallOnesAreThoseOfTorchao) {
  const auto left = [](Fp8Recipe recipe) {
    const DecoderSpec spec =
        spec_with({.recipe = recipe, .skip_small = true},
                  {.width = 1536, .layers = 1, .heads = 12, .kv_heads = 2, .ffn_width = 6144});
    std::string text = fp8_text(spec);
    return text.substr(0, text.find(" linear"));
  };
  // Of 2048 x 1536 (q, k, v), 1536 x 1536, 12288 x 1536 and 1536 x 6144.
  EXPECT_EQ(left(Fp8Recipe::kTensorwise), "7 of 7");
  EXPECT_EQ(left(Fp8Recipe::kRowwise), "2 of 7");
  EXPECT_EQ(left(Fp8Recipe::kRowwiseWithGwHp), "2 of 7");
}

TEST(Fp8Layers, MistakesAreNamed) {
  const Fp8Recipe recipe = Fp8Recipe::kRowwise;
  EXPECT_EQ(problem_with({.recipe = recipe, .skip = {"mlp"}}), "");
  EXPECT_EQ(problem_with({.skip = {"nothing"}}), "");
  EXPECT_EQ(problem_with({.recipe = recipe, .skip = {"q_proj"}}),
            "fp8.skip: names some of model.layers.0.self_attn.q_proj, model.layers.0.self_attn.k_proj, "
            "model.layers.0.self_attn.v_proj, which are one product: name all of them, or none\n");
  EXPECT_EQ(
      problem_with({.recipe = recipe, .skip = {"wq"}}),
      "fp8.skip[1]: \"wq\" is part of no linear layer's name; there are model.layers.0.self_attn.q_proj, "
      "model.layers.0.self_attn.k_proj, model.layers.0.self_attn.v_proj, model.layers.0.self_attn.o_proj, "
      "model.layers.0.mlp.gate_proj, model.layers.0.mlp.up_proj, model.layers.0.mlp.down_proj\n");
  EXPECT_EQ(problem_with({.recipe = recipe, .skip_small = true}),
            "fp8: no linear layer is left for fp8 (q_proj, k_proj, v_proj: fp8.skip_small); remove fp8\n");
}

TEST(Fp8Layers, NeedEqualPartsOfRanksThatAGpuCanMultiply) {
  const Fp8Config fp8 = {.recipe = Fp8Recipe::kRowwise};
  EXPECT_EQ(problem_with(fp8, 2), "");
  EXPECT_EQ(problem_with(fp8, 4),
            "fp8.recipe: expected parts of model.layers.0.mlp.gate_proj that are equal on 4 ranks and a "
            "multiple of 16, got 96 outputs (parallel.tp = 4): name the layer in fp8.skip, or choose another "
            "parallel.tp\n");
  EXPECT_EQ(problem_with({.recipe = Fp8Recipe::kRowwise, .skip = {"mlp"}}, 4), "");
}

/// A rank's part of a layer is smaller, but the layer is chosen as one rank chooses it.
TEST(Fp8Layers, AreChosenByTheSizesOfWholeLayers) {
  const DecoderSpec whole =
      spec_with({.recipe = Fp8Recipe::kRowwise, .skip = {"layers.0."}, .skip_small = true},
                {.width = 1536, .layers = 2, .heads = 12, .kv_heads = 2, .ffn_width = 6144});
  const std::vector<Fp8Product> one = block_params(whole, 1).fp8;
  ASSERT_EQ(one.size(), 1U);
  for (int64_t rank = 0; rank < 4; ++rank) {
    const DecoderSpec part = tp_spec(whole, {4, rank});
    EXPECT_TRUE(block_params(part, 0).fp8.empty());
    const std::vector<Fp8Product> own = block_params(part, 1).fp8;
    ASSERT_EQ(own.size(), 1U);
    EXPECT_EQ(own.front().outputs, (std::vector<int64_t>{1536, 1536}));
    EXPECT_FALSE(own.front().cuts_inputs);
  }
}

TEST(Fp8Layers, TakeMemoryForOneProduct) {
  const DecoderSpec spec = spec_with({.recipe = Fp8Recipe::kRowwise});
  EXPECT_EQ(fp8_bytes(spec_with({}), {2, 32}, true), 0);
  // Gate and up: the codes of x and of weights, and y in bf16.
  EXPECT_EQ(fp8_bytes(spec, {2, 32}, true), 64 * 64 + 192 * 64 + 2 * 64 * 192);
  // Their gradient: codes of x and dy, these as bf16, and fp32 sums.
  EXPECT_EQ(fp8_bytes(spec, {2, 32}, false), 3 * 64 * (64 + 192) + 4 * 64 * 192);
}

}  // namespace
}  // namespace tycho
