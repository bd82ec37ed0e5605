// Layouts against the published tables: TorchTitan's for Llama, LLM Foundry's for MPT, GPT-2's paper; and
// against Hugging Face's names.
#include "trainer/layout/model_layout.h"
#include "trainer/families/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "trainer/families/decoder_spec.h"

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

struct Mpt {
  const char* name;
  int64_t width, heads, layers, num_params;
  double gflop_per_token;  // at 2048 tokens
};

const Mpt kMpt[] = {{"125m", 768, 12, 12, 125311488, 0.978},   {"350m", 1024, 16, 24, 355985408, 2.740},
                    {"760m", 1536, 12, 24, 760470528, 5.469},  {"1b", 2048, 16, 24, 1315950592, 9.104},
                    {"3b", 2560, 20, 32, 2651837440, 17.92},   {"7b", 4096, 32, 32, 6658859008, 43.17},
                    {"13b", 5120, 40, 40, 12853954560, 82.16}, {"30b", 7168, 56, 48, 29975214080, 188.3},
                    {"70b", 8192, 64, 80, 64862437376, 405.3}};

TEST(ModelLayout, CountsParametersAndFlopsAsLlmFoundryDoes) {
  for (const Mpt& mpt : kMpt) {
    const ModelLayout layout =
        model_layout({MptConfig{.width = mpt.width, .layers = mpt.layers, .heads = mpt.heads}});
    EXPECT_EQ(layout.num_params(), mpt.num_params) << mpt.name;
    EXPECT_NEAR(layout.flops_per_token_full(2048) / 1e9 / mpt.gflop_per_token, 1, 1e-3) << mpt.name;
  }
}

/// Six blocks, in threes: one that has keys and values, and two that use them.
MptConfig shared_keys() {
  MptConfig mpt{.width = 64, .layers = 6, .heads = 4, .kv_heads = 2, .vocab_size = 96};
  mpt.positions = PositionKind::kRope;
  mpt.qk_gn = true;
  mpt.blocks = {
      .order = {"near", "again", "again"},
      .kinds = {{"near", {.sliding_window = 8}},
                {"again", {.nope = true, .temperature_tuning = {.attn_scale = 0.1}, .reuse_kv = 1}}}};
  return mpt;
}

TEST(DecoderSpec, GivesBlocksWhatTheirKindsSay) {
  MptConfig mpt = shared_keys();
  mpt.temperature_tuning = {.attn_scale = 0.5, .floor_scale = 10};
  mpt.sliding_window = 30;
  const DecoderSpec spec = decoder_spec({mpt});
  std::vector<int64_t> owners;
  for (const BlockSpec& block : spec.blocks) owners.push_back(block.kv_block);
  EXPECT_EQ(owners, (std::vector<int64_t>{0, 0, 0, 3, 3, 3}));
  EXPECT_EQ(spec.last_user_of_kv(0), 2);
  EXPECT_EQ(spec.last_user_of_kv(3), 5);
  EXPECT_EQ(spec.block(3).window, 8);
  EXPECT_EQ(spec.block(4).window, 30);
  EXPECT_TRUE(spec.block(0).positions);
  EXPECT_FALSE(spec.block(1).positions);
  EXPECT_EQ(spec.block(0).attn_scale, 0.5);
  EXPECT_EQ(spec.block(1).attn_scale, 0.1);
  EXPECT_EQ(spec.block(1).floor_scale, 10);
  EXPECT_FALSE(decoder_spec({MptConfig{}}).shares_kv());
}

TEST(ModelLayout, HasNoKeysAndValuesWhereABlockReusesThem) {
  const ModelLayout layout = model_layout({shared_keys()}), plain = [] {
    MptConfig mpt = shared_keys();
    mpt.blocks = {};
    return model_layout({mpt});
  }();
  // In four blocks: two heads of keys and of values with their biases, and the norm of keys.
  EXPECT_EQ(plain.num_params() - layout.num_params(), 4 * (4 * 16 * (64 + 1) + 2 * 16));
  std::set<std::string> names;
  for (const ParamSpec& param : layout.units[2].params) names.insert(param.name);
  EXPECT_TRUE(names.count("transformer.blocks.1.attn.Wq.weight"));
  EXPECT_FALSE(names.count("transformer.blocks.1.attn.Wqkv.weight"));
  EXPECT_TRUE(names.count("transformer.blocks.1.attn.q_ln.weight"));
  EXPECT_FALSE(names.count("transformer.blocks.1.attn.k_ln.weight"));
  EXPECT_TRUE(layout.units[4].params.size() == layout.units[1].params.size());
}

TEST(ModelLayout, HasMatricesOfTheirOwnForKeysAndValuesOfAnotherInput) {
  MptConfig mpt = shared_keys();
  mpt.blocks = {.order = {"default", "input"}, .kinds = {{"input", {.reuse_kv_x = 1}}}};
  const DecoderSpec spec = decoder_spec({mpt});
  EXPECT_EQ(spec.block(3).x_block, 2);
  EXPECT_EQ(spec.last_user_of_x(2), 3);
  const ModelLayout layout = model_layout({mpt});
  mpt.blocks = {};
  EXPECT_EQ(layout.num_params(), model_layout({mpt}).num_params());
  const UnitSpec &first = layout.units[1], &second = layout.units[2];
  EXPECT_EQ(first.params[2].name, "transformer.blocks.0.attn.Wq.weight");
  EXPECT_EQ(first.stacks[0].count, 3);
  EXPECT_EQ(second.params[3].name, "transformer.blocks.1.attn.Wk.weight");
  EXPECT_EQ(second.stacks[0].first, 3);
  EXPECT_EQ(second.stacks[0].count, 2);
}

TEST(ModelLayout, KeepsTheKeysAndValuesThatOthersReuse) {
  const ActivationSpecs specs = activation_specs({shared_keys()}, {1, 64}, 4);
  const auto bytes_of = [&](size_t block, const char* name) {
    for (const SlotSpec& slot : specs.saved[block])
      if (slot.name == name) return slot_bytes(slot, 4);
    return int64_t{-1};
  };
  EXPECT_EQ(bytes_of(0, "qkv"), 4 * 64 * 8 * 16);
  EXPECT_EQ(bytes_of(1, "qkv"), 4 * 64 * 4 * 16);
  EXPECT_EQ(bytes_of(0, "d_kv"), 4 * 64 * 4 * 16);
  EXPECT_EQ(bytes_of(1, "d_kv"), 0);
  // When all is computed again, the two that have keys and values keep them and their gradient.
  const ActivationBytes full = activation_bytes(specs, {Recompute::kFull, 1}, 4);
  EXPECT_EQ(full.kept, 2 * (bytes_of(0, "qkv") + bytes_of(0, "d_kv")));
  const ActivationBytes none = activation_bytes(specs, {}, 4);
  EXPECT_EQ(none.shared, 0);
}

TEST(ModelLayout, ActivationsWaitInGradientsAsFarAsTheyFit) {
  ActivationSpecs specs;
  for (int i = 0; i < 3; ++i)
    specs.saved.push_back(
        {{"a", {256}}, {"again", {512}, SlotType::kCompute, Recompute::kSelective}, {"b", {64}}});
  specs.scratch = {{"scratch", {16}}};
  specs.model = {{"stream", {32}}, {.name = "logits", .shape = {128}, .of_head = true}};
  const RecomputeConfig again = {Recompute::kSelective, 1};
  EXPECT_EQ(lent_slots(specs, again, 4).num_bytes, 0);
  EXPECT_EQ(activation_bytes(specs, again, 4).all(), 4 * (3 * (256 + 64) + 512 + 16 + 32 + 128));
  specs.lent = {4 * (256 + 64), 4 * 256, 4 * 127};
  const LentSlots lent = lent_slots(specs, again, 4);
  const int64_t own = LentSlots::kOwn;
  EXPECT_EQ(lent.saved[0], (std::vector<int64_t>{own, own, own})) << "nothing comes after its backward";
  EXPECT_EQ(lent.saved[1], (std::vector<int64_t>{0, own, 4 * 256}));
  EXPECT_EQ(lent.saved[2], (std::vector<int64_t>{0, own, own}));
  EXPECT_EQ(lent.model, (std::vector<int64_t>{own, own})) << "too large by a number";
  EXPECT_EQ(lent.num_bytes, 4 * (256 + 64 + 256));
  const ActivationBytes bytes = activation_bytes(specs, again, 4);
  EXPECT_EQ(bytes.kept, 4 * (256 + 64 + 64));
  EXPECT_EQ(bytes.shared, 4 * 512);
  specs.lent.back() += 4;
  EXPECT_EQ(lent_slots(specs, again, 4).model.back(), 0);
  EXPECT_EQ(activation_bytes(specs, again, 4).other, 4 * (16 + 32));
}

TEST(ModelLayout, EachLevelOfRecomputationKeepsLess) {
  LlamaConfig llama;
  llama.width = 64, llama.layers = 3, llama.heads = 4, llama.ffn_width = 128;
  Olmo2Config olmo;
  olmo.width = 64, olmo.layers = 3, olmo.heads = 4, olmo.ffn_width = 128;
  const auto kept = [](const ModelConfig& model, Recompute mode) {
    return activation_bytes(activation_specs(model, {2, 16}, 2), {mode, 1}, 2).kept;
  };
  const int64_t tokens = 32, result = tokens * 64 * 2;
  EXPECT_EQ(kept({llama}, Recompute::kNone) - kept({llama}, Recompute::kNorms), 3 * 2 * result);
  EXPECT_EQ(kept({llama}, Recompute::kNorms) - kept({llama}, Recompute::kSelective),
            3 * tokens * 2 * 128 * 2);
  EXPECT_LT(kept({llama}, Recompute::kFull), kept({llama}, Recompute::kSelective));
  EXPECT_EQ(kept({olmo}, Recompute::kNone), kept({olmo}, Recompute::kNorms))
      << "its norms follow the branches";
}

TEST(ModelLayout, CountsTheParametersOfGpt2) {
  EXPECT_EQ(model_layout({Gpt2Config{}}).num_params(), 124439808);
  EXPECT_EQ(model_layout({Gpt2Config{.width = 1024, .layers = 24, .heads = 16}}).num_params(), 354823168);
  EXPECT_EQ(model_layout({Gpt2Config{.width = 1280, .layers = 36, .heads = 20}}).num_params(), 774030080);
  EXPECT_EQ(model_layout({Gpt2Config{.width = 1600, .layers = 48, .heads = 25}}).num_params(), 1557611200);
}

TEST(DecoderSpec, HasTheSlopesOfAlibi) {
  EXPECT_EQ(alibi_slopes(4, 8), (std::vector<float>{0x1p-2f, 0x1p-4f, 0x1p-6f, 0x1p-8f}));
  // Six of eight: every second one first.
  EXPECT_EQ(alibi_slopes(6, 8), (std::vector<float>{0x1p-2f, 0x1p-4f, 0x1p-6f, 0x1p-8f, 0x1p-1f, 0x1p-3f}));
}

TEST(DecoderSpec, StartsMatricesAsLlmFoundryDoes) {
  const DecoderSpec kaiming = decoder_spec({MptConfig{.width = 512, .layers = 8}});
  EXPECT_DOUBLE_EQ(kaiming.init.qkv.scale, std::sqrt(2.0 / 512));
  EXPECT_DOUBLE_EQ(kaiming.init.down.scale, std::sqrt(2.0 / 2048) / 4);
  // Wqkv head by head: fans of 512 and 32, however many heads share keys.
  MptConfig xavier{.width = 512, .layers = 8, .heads = 16, .kv_heads = 4};
  xavier.init.name = InitScheme::kXavierNormal;
  EXPECT_DOUBLE_EQ(decoder_spec({xavier}).init.qkv.scale, std::sqrt(2.0 / (512 + 32)));
  xavier.init.name = InitScheme::kXavierUniform;
  EXPECT_DOUBLE_EQ(decoder_spec({xavier}).init.qkv.scale, std::sqrt(6.0 / (512 + 32)));
  EXPECT_DOUBLE_EQ(decoder_spec({xavier}).init.up.scale, std::sqrt(6.0 / (512 + 2048)));
  MptConfig neox{.width = 512, .layers = 8};
  neox.init.name = InitScheme::kNeox;
  EXPECT_DOUBLE_EQ(decoder_spec({neox}).init.up.scale, std::sqrt(2.0 / (5 * 512)));
  EXPECT_DOUBLE_EQ(decoder_spec({neox}).init.out.scale, std::sqrt(2.0 / (5 * 512)) / (8 / std::sqrt(10.0)));
}

/// How the parameter of that name starts.
Init init_of(const ModelLayout& layout, const std::string& name) {
  for (const UnitSpec& unit : layout.units)
    for (const ParamSpec& param : unit.params)
      if (param.name == name) return param.init;
  ADD_FAILURE() << "no parameter " << name;
  return {};
}

TEST(ModelLayout, StartsALlamaAsTorchTitanDoes) {
  LlamaConfig c{.width = 64, .layers = 3, .ffn_width = 128, .vocab_size = 100};
  c.init = LlamaInit::kTorchtitan;
  const ModelLayout layout = model_layout({c});
  const auto expect = [&](const std::string& name, Init::Kind kind, double scale) {
    const Init init = init_of(layout, name + ".weight");
    EXPECT_EQ(init.kind, kind) << name;
    EXPECT_DOUBLE_EQ(init.scale, scale) << name;
  };
  const auto normal = Init::Kind::kNormal;
  expect("model.embed_tokens", normal, 1);
  expect("lm_head", Init::Kind::kCutNormal, 1.0 / 8);
  for (int i = 0; i < 3; ++i) {
    const std::string block = "model.layers." + std::to_string(i) + ".";
    for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj"})
      expect(block + name, normal, 0.02);
    for (const char* name : {"self_attn.o_proj", "mlp.down_proj", "mlp.up_proj"})
      expect(block + name, normal, 0.02 / std::sqrt(2.0 * (i + 1)));
    expect(block + "input_layernorm", Init::Kind::kOnes, 0);
  }
  // A tied table is the head's: the embedding's own first values are given up.
  c.tied = true;
  EXPECT_EQ(init_of(model_layout({c}), "model.embed_tokens.weight").kind, Init::Kind::kCutNormal);
}

TEST(ModelLayout, StartsALlamaByOneDeviation) {
  const ModelLayout layout = model_layout({LlamaConfig{.layers = 8}});
  EXPECT_DOUBLE_EQ(init_of(layout, "model.layers.5.mlp.up_proj.weight").scale, 0.02);
  EXPECT_DOUBLE_EQ(init_of(layout, "model.layers.5.mlp.down_proj.weight").scale, 0.02 / 4);
  EXPECT_DOUBLE_EQ(init_of(layout, "model.embed_tokens.weight").scale, 0.02);
}

TEST(DecoderSpec, ScalesScoresAsLlmFoundryDoes) {
  EXPECT_DOUBLE_EQ(decoder_spec({MptConfig{.width = 512, .heads = 8}}).attention.softmax_scale, 1.0 / 8);
  EXPECT_DOUBLE_EQ(
      decoder_spec({MptConfig{.width = 512, .heads = 8, .head_width = 16}}).attention.softmax_scale, 1.0 / 8);
  EXPECT_DOUBLE_EQ(
      decoder_spec({LlamaConfig{.width = 512, .heads = 8, .head_width = 16}}).attention.softmax_scale,
      1.0 / 4);
}

TEST(ModelLayout, TiedModelsHaveNoSecondTable) {
  const ModelLayout layout = model_layout({LlamaConfig{.tied = true}});
  for (const ParamSpec& param : layout.units.back().params) EXPECT_NE(param.name, "lm_head.weight");
  EXPECT_TRUE(layout.tied);
}

TEST(ModelLayout, DecaysMatricesOnly) {
  for (const ModelConfig& config :
       {ModelConfig{LlamaConfig{}}, ModelConfig{MptConfig{}}, ModelConfig{Gpt2Config{}}})
    for (const UnitSpec& unit : model_layout(config).units)
      for (const ParamSpec& param : unit.params)
        EXPECT_EQ(param.decay, param.shape.size() == 2) << param.name;
}

}  // namespace
}  // namespace tycho
