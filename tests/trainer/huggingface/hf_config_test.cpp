// Hugging Face's config.json against model configs, both ways, and what is wrong in one.
#include "trainer/huggingface/hf_config.h"

#include <cmath>

#include "tests/trainer/huggingface/convert_fixture.h"
#include "trainer/base/json_writer.h"
#include "trainer/families/config.h"
#include "trainer/families/decoder_spec.h"

namespace tycho {
namespace {

Json llama3() {
  return parse_json(
      R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 128000, "eos_token_id": [128001, 128008], "hidden_act": "silu", "hidden_size": 4096,
    "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 131072, "mlp_bias": false,
    "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0,
    "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.42.3", "use_cache": true,
    "vocab_size": 128256})",
      "llama 3.1");
}

Json mpt_7b() {
  return parse_json(
      R"({"architectures": ["MPTForCausalLM"], "attn_config": {"alibi": true, "alibi_bias_max": 8,
    "attn_impl": "torch", "attn_pdrop": 0, "attn_type": "multihead_attention", "attn_uses_sequence_id": false,
    "clip_qkv": null, "prefix_lm": false, "qk_ln": false, "softmax_scale": null},
    "auto_map": {"AutoConfig": "configuration_mpt.MPTConfig"}, "d_model": 4096, "emb_pdrop": 0,
    "embedding_fraction": 1.0, "expansion_ratio": 4, "init_config": {"emb_init_std": null,
    "emb_init_uniform_lim": null, "fan_mode": "fan_in", "init_div_is_residual": true, "init_gain": 0,
    "init_nonlinearity": "relu", "init_std": 0.02, "name": "kaiming_normal_", "verbose": 0}, "init_device": "cpu",
    "learned_pos_emb": true, "logit_scale": null, "max_seq_len": 2048, "model_type": "mpt", "n_heads": 32,
    "n_layers": 32, "no_bias": true, "norm_type": "low_precision_layernorm", "resid_pdrop": 0,
    "tokenizer_name": "EleutherAI/gpt-neox-20b", "torch_dtype": "bfloat16", "transformers_version": "4.28.1",
    "use_cache": false, "verbose": 0, "vocab_size": 50432})",
      "mpt-7b");
}

template <class Family>
Family read(const Json& json) {
  return read_hf_config(json, "config.json").model.as<Family>();
}

Json fields_of(const ModelConfig& model) { return to_json(model); }

TEST(HfConfig, ReadsLlama31) {
  const auto model = read<LlamaConfig>(llama3());
  EXPECT_EQ(model.width, 4096);
  EXPECT_EQ(model.num_kv_heads(), 8);
  EXPECT_EQ(model.head_width, std::nullopt);
  EXPECT_EQ(model.ffn_width, 14336);
  EXPECT_EQ(model.max_seq_len, 131072);
  EXPECT_EQ(model.rope_theta, 500000);
  EXPECT_EQ(model.rope_scaling.type, RopeScaling::kLlama3);
  EXPECT_EQ(model.rope_scaling.factor, 8);
  EXPECT_EQ(model.rope_scaling.original_max_seq_len, 8192);
  EXPECT_FALSE(model.tied);
}

TEST(HfConfig, ReadsTheKeysOfSmolLm2) {
  Json json = llama3();
  const Json plain = fields_of(read_hf_config(json, "").model);
  json.update({{"is_llama_config", true},
               {"rope_interleaved", false},
               {"transformers.js_config", {{"kv_cache_dtype", {{"fp16", "float16"}}}}}});
  EXPECT_EQ(fields_of(read_hf_config(json, "").model), plain);
  json["rope_interleaved"] = true;
  expect_contains(message_of(ExitCode::kUnusable, [&] { read_hf_config(json, ""); }), "rope_interleaved");
}

TEST(HfConfig, TakesTransformersDefaultsForWhatIsAbsent) {
  const auto llama = read<LlamaConfig>({{"model_type", "llama"}});
  EXPECT_EQ(llama.width, 4096);
  EXPECT_EQ(llama.ffn_width, 11008);
  EXPECT_EQ(llama.rope_theta, 10000);
  EXPECT_EQ(llama.norm_eps, 1e-6);
  const auto gpt2 = read<Gpt2Config>({{"model_type", "gpt2"}});
  EXPECT_EQ(gpt2.width, 768);
  EXPECT_EQ(gpt2.resid_dropout, 0.1);
  EXPECT_EQ(gpt2.activation, Activation::kGeluTanh);
  const auto mpt = read<MptConfig>({{"model_type", "mpt"}});
  EXPECT_EQ(mpt.positions, PositionKind::kAlibi);
  EXPECT_TRUE(mpt.no_bias);
}

TEST(HfConfig, ReadsTheLayoutOfTransformers5) {
  Json json = llama3();
  json["rope_parameters"] = json["rope_scaling"];
  json["rope_parameters"]["rope_theta"] = 250000.0;
  json.erase("rope_scaling");
  json.erase("rope_theta");
  const auto model = read<LlamaConfig>(json);
  EXPECT_EQ(model.rope_theta, 250000);
  EXPECT_EQ(model.rope_scaling.type, RopeScaling::kLlama3);
}

TEST(HfConfig, CountsDynamicRopeScalingFromTheLongestPosition) {
  Json json = llama3();
  json["rope_scaling"] = {{"type", "dynamic"}, {"factor", 2.0}};
  json["max_position_embeddings"] = 4096;
  const auto model = read<LlamaConfig>(json);
  EXPECT_EQ(model.rope_scaling.type, RopeScaling::kDynamic);
  EXPECT_EQ(model.rope_scaling.original_max_seq_len, 4096);
}

Json with_scaling(Json scaling) {
  Json json = llama3();
  json["rope_scaling"] = std::move(scaling);
  return json;
}

Json longrope() {
  return with_scaling({{"type", "longrope"},
                       {"short_factor", std::vector<double>(64, 1.5)},
                       {"long_factor", std::vector<double>(64, 3.0)},
                       {"original_max_position_embeddings", 4096}});
}

TEST(HfConfig, ReadsYarn) {
  const Json json = with_scaling({{"rope_type", "yarn"},
                                  {"factor", 16.0},
                                  {"original_max_position_embeddings", 16384},
                                  {"beta_fast", 24},
                                  {"beta_slow", 2.0},
                                  {"mscale", 1.0},
                                  {"mscale_all_dim", 0.5},
                                  {"truncate", false}});
  const RopeScalingConfig rope = read<LlamaConfig>(json).rope_scaling;
  EXPECT_EQ(rope.type, RopeScaling::kYarn);
  EXPECT_EQ(rope.factor, 16);
  EXPECT_EQ(rope.original_max_seq_len, 16384);
  EXPECT_EQ(rope.beta_fast, 24);
  EXPECT_EQ(rope.beta_slow, 2);
  EXPECT_EQ(rope.mscale, 1.0);
  EXPECT_EQ(rope.mscale_all_dim, 0.5);
  EXPECT_FALSE(rope.truncate);
}

TEST(HfConfig, StretchesALongropeToTheLongestPositionUnlessAFactorIsGiven) {
  EXPECT_EQ(read<LlamaConfig>(longrope()).rope_scaling.factor, 32);
  EXPECT_EQ(read<LlamaConfig>(longrope()).rope_scaling.long_factor, std::vector<double>(64, 3.0));
  Json given = longrope(), without = longrope();
  given["rope_scaling"]["factor"] = 4.0;
  EXPECT_EQ(read<LlamaConfig>(given).rope_scaling.factor, 4);
  without["rope_scaling"].erase("original_max_position_embeddings");
  EXPECT_EQ(read<LlamaConfig>(without).rope_scaling.factor, 1);
  EXPECT_EQ(read<LlamaConfig>(without).rope_scaling.original_max_seq_len, 131072);
}

TEST(HfConfig, ReadsTheMptThatMosaicPublished) {
  const auto model = read<MptConfig>(mpt_7b());
  EXPECT_EQ(model.width, 4096);
  EXPECT_EQ(model.positions, PositionKind::kAlibi);
  EXPECT_TRUE(model.no_bias);
  EXPECT_EQ(model.vocab_size, 50432);
  EXPECT_EQ(model.init.init_std, std::nullopt);
}

TEST(HfConfig, ReadsWhatOnlyLlmFoundryHas) {
  Json json = mpt_7b();
  json["attn_config"] = {{"attn_type", "grouped_query_attention"},
                         {"kv_n_heads", 8},
                         {"qk_ln", true},
                         {"clip_qkv", 6.0},
                         {"rope", true},
                         {"rope_theta", 500000},
                         {"rope_impl", "hf"},
                         {"rope_hf_config", {{"type", "linear"}, {"factor", 4.0}}},
                         {"sliding_window_size", 512},
                         {"attn_logit_softcapping", 50.0}};
  json["ffn_config"] = {
      {"ffn_type", "mptglu"}, {"ffn_hidden_size", 1024}, {"ffn_act_fn", {{"name", "silu"}}}};
  json["norm_type"] = "rmsnorm";
  json["logit_scale"] = "inv_sqrt_d_model";
  json["no_bias"] = false;
  json["attention_bias"] = false;
  const auto model = read<MptConfig>(json);
  EXPECT_EQ(model.num_kv_heads(), 8);
  EXPECT_TRUE(model.qk_ln);
  EXPECT_EQ(model.clip_qkv, 6.0);
  EXPECT_EQ(model.positions, PositionKind::kRope);
  EXPECT_EQ(model.rope_scaling.type, RopeScaling::kLinear);
  EXPECT_EQ(model.rope_scaling.factor, 4);
  EXPECT_EQ(model.sliding_window, 512);
  EXPECT_EQ(model.attn_softcap, 50);
  EXPECT_EQ(model.ffn, MptFfn::kGlu);
  EXPECT_EQ(model.hidden(), 1024);
  EXPECT_EQ(model.activation, Activation::kSilu);
  EXPECT_EQ(model.norm, MptNorm::kRmsNorm);
  EXPECT_EQ(model.logit_scale, 1.0 / 64);
  EXPECT_EQ(model.attention_bias, false);
}

TEST(HfConfig, ReadsTheRotationsThatRopeImplChooses) {
  const auto of = [](const char* impl, const char* dail) {
    return read<MptConfig>({{"model_type", "mpt"},
                            {"attn_config",
                             {{"rope", true},
                              {"rope_impl", impl},
                              {"rope_dail_config", {{"type", dail}, {"xpos_scale_base", 256}}},
                              {"rope_hf_config", {{"type", "linear"}, {"factor", 4.0}}}}}});
  };
  EXPECT_EQ(of("dail", "xpos").xpos_scale_base, 256);
  EXPECT_EQ(of("dail", "xpos").rope_scaling.type, RopeScaling::kNone);
  EXPECT_EQ(of("dail", "original").xpos_scale_base, std::nullopt);
  EXPECT_EQ(of("hf", "xpos").xpos_scale_base, std::nullopt);
  EXPECT_EQ(of("hf", "xpos").rope_scaling.type, RopeScaling::kLinear);
  const Json usual = {{"model_type", "mpt"},
                      {"attn_config", {{"rope", true}, {"rope_dail_config", {{"type", "xpos"}}}}}};
  EXPECT_EQ(read<MptConfig>(usual).xpos_scale_base, 512);
  Json wrong = usual;
  wrong["attn_config"]["rope_dail_config"] = {{"type", "yarn"}, {"scale", 3}};
  const std::string problems = message_of(ExitCode::kUnusable, [&] { read_hf_config(wrong, "config.json"); });
  expect_contains(problems, "attn_config.rope_dail_config.type");
  expect_contains(problems, "attn_config.rope_dail_config.scale");
}

TEST(HfConfig, WritesWhatItReads) {
  Json foundry = mpt_7b();
  foundry["attn_config"]["qk_gn"] = true;
  foundry["attn_config"]["alibi"] = false;
  foundry["ffn_config"] = {{"ffn_type", "mptmlp"},
                           {"ffn_act_fn", {{"name", "gelu"}, {"approximate", "tanh"}}}};
  Json xpos = mpt_7b();
  xpos["attn_config"] = {{"rope", true}, {"rope_dail_config", {{"type", "xpos"}, {"xpos_scale_base", 384}}}};
  Json dynamic = llama3();
  dynamic["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 2.0}};
  dynamic["head_dim"] = 64;
  const Json yarn = with_scaling({{"rope_type", "yarn"},
                                  {"factor", 4.0},
                                  {"original_max_position_embeddings", 32768},
                                  {"mscale", 1.0},
                                  {"mscale_all_dim", 0.5}});
  for (const Json& json :
       {llama3(), dynamic, yarn, longrope(), mpt_7b(), foundry, xpos, Json{{"model_type", "gpt2"}},
        read_json_file(golden_model("llama") + "/config.json"),
        read_json_file(golden_model("mpt") + "/config.json")}) {
    const ModelConfig model = read_hf_config(json, "config.json").model;
    const HfConfigText text = write_hf_config(model, 1024);
    EXPECT_EQ(fields_of(read_hf_config(text.json, "config.json").model), fields_of(model))
        << text.json.dump(1);
  }
}

TEST(HfConfig, RefusesHeadsThatDailTurnsInPart) {
  Json json = {{"model_type", "mpt"}, {"d_model", 64}, {"n_heads", 4}, {"head_dim", 32}};
  json["attn_config"] = {{"rope", true}};
  expect_contains(message_of(ExitCode::kUnusable, [&] { read_hf_config(json, "c"); }),
                  "attn_config.rope_impl: is dail, which rotates 16 of the 32 elements of a head");
  json["attn_config"]["rope_impl"] = "hf";
  EXPECT_EQ(read<MptConfig>(json).head_dim(), 32);
}

TEST(HfConfig, NamesTheArchitectureThatComputesTheModel) {
  const HfConfigText native = write_hf_config(read_hf_config(mpt_7b(), "").model, 1024);
  EXPECT_EQ(native.json["architectures"][0], "MptForCausalLM");
  EXPECT_TRUE(native.warnings.empty());
  EXPECT_EQ(native.json["expansion_ratio"].dump(), "4");  // transformers takes no 4.0
  Json json = mpt_7b();
  json["attn_config"]["qk_ln"] = true;
  const HfConfigText foundry = write_hf_config(read_hf_config(json, "").model, 1024);
  EXPECT_EQ(foundry.json["architectures"][0], "MPTForCausalLM");
  ASSERT_EQ(foundry.warnings.size(), 1u);
  expect_contains(foundry.warnings[0], "norms of queries and keys");
}

TEST(HfConfig, NamesEveryKeyThatItCannotRead) {
  Json json = llama3();
  json["hidden_act"] = "gelo";
  json["hiden_size"] = 7;
  json["rope_scaling"] = {{"rope_type", "proportional"}, {"factor", 4.0}, {"beta_quick", 32}};
  json["quantization_config"] = {{"quant_method", "fp8"}};
  json["num_hidden_layers"] = 0.5;
  const std::string text =
      message_of(ExitCode::kUnusable, [&] { read_hf_config(json, "models/x/config.json"); });
  expect_contains(text, "models/x/config.json");
  expect_contains(text, "hidden_act: expected one of gelu");
  expect_contains(text, "hiden_size: is unknown to Tycho; did you mean \"hidden_size\"?");
  expect_contains(text, "rope_scaling.rope_type: expected one of default");
  expect_contains(text, "rope_scaling.beta_quick: is unknown");
  expect_contains(text, "quantization_config");
  expect_contains(text, "num_hidden_layers: expected a whole number");
}

TEST(HfConfig, SaysThatExpertsAreNotSupported) {
  Json json = mpt_7b();
  json["ffn_config"] = {{"ffn_type", "mb_dmoe"}, {"moe_num_experts", 8}};
  const std::string text = message_of(ExitCode::kUnusable, [&] { read_hf_config(json, "config.json"); });
  expect_contains(text, "ffn_config.ffn_type: expected one of mptmlp");
  expect_contains(text, "mixtures of experts are not supported");
}

TEST(HfConfig, NamesExpertsWhereverTheyAre) {
  Json llama = llama3();
  llama["num_local_experts"] = 8;
  expect_contains(message_of(ExitCode::kUnusable, [&] { read_hf_config(llama, "c"); }),
                  "num_local_experts: mixtures of experts are not supported: import a dense model");
  Json mpt = mpt_7b();
  mpt["ffn_config"] = {{"ffn_type", "torch_dmoe"}};
  expect_contains(message_of(ExitCode::kUnusable, [&] { read_hf_config(mpt, "c"); }),
                  "got \"torch_dmoe\"; mixtures of experts are not supported");
}

TEST(HfConfig, RejectsEqualFrequencyFactors) {
  Json json = llama3();
  json["rope_scaling"]["low_freq_factor"] = 4.0;
  expect_contains(message_of(ExitCode::kUnusable, [&] { read_hf_config(json, "c"); }),
                  "model.rope_scaling.low_freq_factor: 4 is not below high_freq_factor = 4");
}

TEST(HfConfig, LeavesOutWhatDoesNothing) {
  Json linear = llama3();
  linear["rope_scaling"]["rope_type"] = "linear";
  const auto llama = read<LlamaConfig>(linear);
  EXPECT_EQ(llama.rope_scaling.factor, 8);
  EXPECT_EQ(llama.rope_scaling.original_max_seq_len, 8192);  // the default: unused
  Json yarn =
      with_scaling({{"rope_type", "yarn"}, {"factor", 4.0}, {"low_freq_factor", 2.0}, {"mscale", 1.0}});
  const RopeScalingConfig rope = read<LlamaConfig>(yarn).rope_scaling;
  EXPECT_EQ(rope.low_freq_factor, 1);
  EXPECT_EQ(rope.mscale, std::nullopt) << "transformers needs both";
  Json json = mpt_7b();
  json["expansion_ratio"] = 3;
  json["ffn_config"] = {{"ffn_hidden_size", 1024}};
  json["init_config"]["emb_init_std"] = 0.1;
  json["init_config"]["emb_init_uniform_lim"] = 0.2;
  const auto mpt = read<MptConfig>(json);
  EXPECT_EQ(mpt.expansion_ratio, 4);
  EXPECT_EQ(mpt.init.emb_init_std, 0.1);
  EXPECT_EQ(mpt.init.emb_init_uniform_lim, std::nullopt);
}

TEST(HfConfig, NotesAnInitialisationThatItsWeightsReplace) {
  Json json = mpt_7b();
  json["init_config"]["name"] = "orthogonal_";
  expect_contains(message_of(ExitCode::kUnusable, [&] { read_hf_config(json, "c"); }),
                  "init_config.name: expected one of kaiming_normal_");
  const HfConfig config = read_hf_config(json, "c", HfStart::kItsWeights);
  EXPECT_EQ(config.model.as<MptConfig>().init.name, InitScheme::kKaimingNormal);
  ASSERT_EQ(config.notes.size(), 1u);
  expect_contains(config.notes[0], "init_config.name expected one of");
  expect_contains(config.notes[0], "no effect, because weights are loaded");
}

TEST(HfConfig, ReadsNumbersAndRangesOfInit) {
  Json json = mpt_7b();
  json["init_config"]["init_div_is_residual"] = 3.5;
  json["init_config"]["emb_init_uniform_lim"] = {-0.1, 0.3};
  const HfConfigText text = write_hf_config(read_hf_config(json, "c").model, 1024);
  EXPECT_EQ(text.json["init_config"]["init_div_is_residual"], 3.5);
  EXPECT_EQ(text.json["init_config"]["emb_init_uniform_lim"], (Json{-0.1, 0.3}));
}

TEST(HfConfig, RefusesOtherModelsAndOtherHeads) {
  expect_contains(message_of(ExitCode::kUnusable,
                             [] {
                               read_hf_config({{"model_type", "mamba"}}, "c");
                             }),
                  "model_type is \"mamba\"");
  expect_contains(message_of(ExitCode::kUnusable, [] { read_hf_config(Json::object(), "c"); }),
                  "model_type is null");
  expect_contains(message_of(ExitCode::kUnusable, [] { read_hf_config(Json::array(), "c"); }),
                  "not a JSON object");
  Json json = llama3();
  json["architectures"] = {"LlamaForSequenceClassification"};
  expect_contains(message_of(ExitCode::kUnusable, [&] { read_hf_config(json, "c"); }),
                  "LlamaForSequenceClassification");
}

TEST(HfConfig, HoldsTheRulesOfTheFamily) {
  Json json = llama3();
  json["num_key_value_heads"] = 5;
  expect_contains(message_of(ExitCode::kUnusable, [&] { read_hf_config(json, "c"); }),
                  "not a multiple of kv_heads");
}

TEST(HfConfig, ReadsDropoutOfEveryFamily) {
  const auto of = [](const Json& json) { return decoder_spec(read_hf_config(json, "config.json").model); };
  EXPECT_EQ(of({{"model_type", "gpt2"}}).attention.dropout, 0.1);  // transformers' default
  EXPECT_EQ(of({{"model_type", "gpt2"}, {"attn_pdrop", 0.3}}).attention.dropout, 0.3);
  EXPECT_EQ(of({{"model_type", "llama"}, {"attention_dropout", 0.2}}).attention.dropout, 0.2);
  EXPECT_EQ(of({{"model_type", "mpt"}, {"attn_config", {{"attn_pdrop", 0.4}}}}).attention.dropout, 0.4);
}

TEST(HfConfig, NotesThatDocumentsAreTheDatasMatter) {
  const HfConfig config = read_hf_config(
      {{"model_type", "mpt"}, {"attn_config", {{"attn_uses_sequence_id", true}}}}, "config.json");
  ASSERT_EQ(config.notes.size(), 1u);
  expect_contains(config.notes[0], "train_data.eos_token_id");
}

}  // namespace
}  // namespace tycho
