// Llama as a decoder, and the config.json of LlamaForCausalLM.
#include "trainer/families/llama.h"

#include <cmath>

#include "trainer/families/decoder_spec.h"
#include "trainer/families/hf_family.h"

namespace tycho {
namespace {

/// Returns the init of TorchTitan's Llama (v0.2, depth_init): up is scaled by depth as out and down are, gate
/// is not. Its bounds of the matrices, ±2, are a hundred deviations away, so they are drawn as plain normal
/// numbers.
DecoderInit torchtitan_init(const LlamaConfig& c) {
  const Init matrix = normal(c.init_std);
  const Init head = {Init::Kind::kCutNormal, 1 / std::sqrt(static_cast<double>(c.width))};
  DecoderInit init = {c.tied ? head : normal(1), {}, head, matrix, matrix, matrix, matrix, matrix};
  init.by_depth = true;
  return init;
}

using LlamaKey = HfKey<LlamaConfig>;

std::optional<Json> rope_scaling_json(const LlamaConfig& model) {
  const RopeScalingConfig& rope = model.rope_scaling;
  if (rope.type == RopeScaling::kNone) return Json(nullptr);
  return rope_scaling_json("rope_type", rope);
}

/// Maps max_position_embeddings, from which transformers counts a dynamic scaling whatever else is written.
LlamaKey max_positions() {
  LlamaKey key = mapped("max_position_embeddings", &LlamaConfig::max_seq_len, positive);
  key.read = [](const JsonPath& place, LlamaConfig& model) {
    read_value(place, positive, model.max_seq_len);
    model.rope_scaling.original_max_seq_len = model.max_seq_len.value_or(2048);
  };
  key.write = [](const LlamaConfig& model) -> std::optional<Json> {
    const bool dynamic = model.rope_scaling.type == RopeScaling::kDynamic;
    return dynamic ? Json(model.rope_scaling.original_max_seq_len) : to_json(model.max_seq_len);
  };
  return key;
}

HfTable<LlamaConfig> make_llama_table() {
  const LlamaKey sizes[] = {mapped("hidden_size", &LlamaConfig::width, positive),
                            mapped("num_hidden_layers", &LlamaConfig::layers, positive),
                            mapped("num_attention_heads", &LlamaConfig::heads, positive)};
  LlamaKey kv_heads = mapped("num_key_value_heads", &LlamaConfig::kv_heads, positive);
  kv_heads.write = [](const LlamaConfig& model) -> std::optional<Json> { return model.num_kv_heads(); };
  LlamaKey head_dim = mapped("head_dim", &LlamaConfig::head_width, positive);
  head_dim.write = [](const LlamaConfig& model) -> std::optional<Json> { return model.head_dim(); };
  HfTable<LlamaConfig> table(std::begin(sizes), std::end(sizes));
  table.insert(table.end(),
               {std::move(kv_heads),
                std::move(head_dim),
                mapped("intermediate_size", &LlamaConfig::ffn_width, positive),
                mapped("vocab_size", &LlamaConfig::vocab_size, positive),
                max_positions(),
                mapped("rms_norm_eps", &LlamaConfig::norm_eps, positive),
                mapped("rope_theta", &LlamaConfig::rope_theta, positive),
                {"rope_scaling", group<LlamaConfig>("", rope_keys<LlamaConfig>()).read, rope_scaling_json},
                {"rope_parameters", group<LlamaConfig>("", rope_keys<LlamaConfig>()).read, {}},
                mapped("tie_word_embeddings", &LlamaConfig::tied),
                mapped("attention_bias", &LlamaConfig::attention_bias),
                mapped("mlp_bias", &LlamaConfig::ffn_bias),
                mapped("attention_dropout", &LlamaConfig::attn_dropout, below(0, 1)),
                mapped("initializer_range", &LlamaConfig::init_std),
                activation_key<LlamaConfig>("hidden_act"),
                must_be<LlamaConfig>("partial_rotary_factor", {1, nullptr}, "heads are rotated completely"),
                must_be<LlamaConfig>("sliding_window", {nullptr}, "use a Llama without a window")});
  table.push_back(must_be<LlamaConfig>("is_llama_config", {true}, "this is not Llama's architecture"));
  table.push_back(must_be<LlamaConfig>("rope_interleaved", {false, nullptr},
                                       "pairs of neighbours are not rotated together"));
  add_irrelevant(table, {"pretraining_tp", "max_sequence_length"});
  return table;
}

LlamaConfig llama_defaults() {
  LlamaConfig model;
  model.width = 4096;
  model.layers = model.heads = 32;
  model.ffn_width = 11008;
  model.vocab_size = 32000;
  model.max_seq_len = 2048;
  model.rope_theta = 10000;
  model.norm_eps = 1e-6;
  model.rope_scaling.original_max_seq_len = 2048;
  return model;
}

/// SmolLM2, which is a Llama.
const HfPresets kLlamaPresets = {
    {"smollm2-135m",
     R"({"hidden_size": 576, "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
       "intermediate_size": 1536, "vocab_size": 49152, "max_position_embeddings": 8192, "rope_theta":
       100000, "rms_norm_eps": 1e-05, "tie_word_embeddings": true})"},
    {"smollm2-360m",
     R"({"hidden_size": 960, "num_hidden_layers": 32, "num_attention_heads": 15, "num_key_value_heads":
       5, "intermediate_size": 2560, "vocab_size": 49152, "max_position_embeddings": 8192, "rope_theta":
       100000, "rms_norm_eps": 1e-05, "tie_word_embeddings": true})"},
    {"smollm2-1.7b",
     R"({"hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads":
       32, "intermediate_size": 8192, "vocab_size": 49152, "max_position_embeddings": 8192, "rope_theta":
       130000, "rms_norm_eps": 1e-05, "tie_word_embeddings": true})"}};

}  // namespace

DecoderSpec spec_of(const LlamaConfig& c) {
  DecoderSpec s = sized_spec(c, c.ffn_width);
  s.attention.qkv_bias = s.attention.out_bias = c.attention_bias;
  s.ffn.bias = c.ffn_bias;
  s.positions.rotary = {{.theta = c.rope_theta, .dim = c.head_dim(), .scaling = c.rope_scaling}};
  s.init = c.init == LlamaInit::kTorchtitan ? torchtitan_init(c) : normal_init(c.init_std, c.layers);
  return s;
}

const HfFamily<LlamaConfig>& hf_family(const LlamaConfig&) {
  static const HfFamily<LlamaConfig> family = {.model_type = "llama",
                                               .architectures = {"LlamaForCausalLM", "LlamaModel"},
                                               .defaults = llama_defaults(),
                                               .table = make_llama_table(),
                                               .presets = kLlamaPresets};
  return family;
}

}  // namespace tycho
