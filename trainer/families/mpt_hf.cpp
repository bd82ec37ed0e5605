// The config.json of MPT, as transformers writes it (MptForCausalLM) and as LLM Foundry does
// (MPTForCausalLM).
#include "trainer/families/mpt_hf.h"

#include <algorithm>

#include "trainer/families/foundry_blocks.h"
#include "trainer/families/foundry_rope.h"
#include "trainer/families/hf_family.h"

namespace tycho {
namespace {

using MptKey = HfKey<MptConfig>;
using MptTable = HfTable<MptConfig>;

/// Maps a flag of the kind of positions: the last true one decides, like in LLM Foundry.
MptKey positions(const char* name, PositionKind kind) {
  const auto read = [=](const JsonPath& place, MptConfig& model) {
    bool chosen = false;
    read_value(place, {}, chosen);
    if (chosen) model.positions = kind;
  };
  return {name, read, [=](const MptConfig& model) -> std::optional<Json> { return model.positions == kind; }};
}

void read_attention_type(const JsonPath& place, MptConfig& model) {
  const int index =
      read_name(place, {"multihead_attention", "multiquery_attention", "grouped_query_attention"});
  if (index == 1) model.kv_heads = 1;
}

std::optional<Json> attention_type(const MptConfig& model) {
  if (model.num_kv_heads() == model.heads) return "multihead_attention";
  return model.num_kv_heads() == 1 ? "multiquery_attention" : "grouped_query_attention";
}

/// Returns the implementation of attention. LLM Foundry's torch attention has ALiBi in all blocks or in none.
std::optional<Json> attention_implementation(const MptConfig& model) {
  const bool some_without = std::any_of(model.blocks.kinds.begin(), model.blocks.kinds.end(),
                                        [](const auto& kind) { return kind.second.nope; });
  return model.positions == PositionKind::kAlibi && some_without ? "flash" : "torch";
}

/// Returns fused_qkv. LLM Foundry fuses by default. It cannot fuse projections from two inputs, and it splits
/// what is fused at d_model, so queries must be as wide as that.
std::optional<Json> fused_qkv(const MptConfig& model) {
  const bool two_inputs = std::any_of(model.blocks.kinds.begin(), model.blocks.kinds.end(),
                                      [](const auto& kind) { return kind.second.reuse_kv_x.has_value(); });
  const bool other_width = model.heads * model.head_dim() != model.width;
  return two_inputs || other_width ? std::optional<Json>(false) : std::nullopt;
}

/// Writes kv_n_heads, which LLM Foundry's other kinds of attention do not accept.
std::optional<Json> grouped_kv_heads(const MptConfig& model) {
  if (attention_type(model) != "grouped_query_attention") return std::nullopt;
  return model.num_kv_heads();
}

MptTable mpt_attention_table() {
  MptKey kv_heads = mapped("kv_n_heads", &MptConfig::kv_heads, positive);
  kv_heads.write = grouped_kv_heads;
  MptKey bias_max = mapped("alibi_bias_max", &MptConfig::alibi_bias_max, positive);
  bias_max.write = [](const MptConfig& model) -> std::optional<Json> {
    return whole_if_possible(model.alibi_bias_max);
  };
  // transformers 5 refuses 0.0 here, for its type says int.
  MptKey dropout = mapped("attn_pdrop", &MptConfig::attn_dropout, below(0, 1));
  dropout.write = [](const MptConfig& model) -> std::optional<Json> {
    return whole_if_possible(model.attn_dropout);
  };
  MptTable table = {
      {"attn_type", read_attention_type, attention_type},
      std::move(kv_heads),
      positions("alibi", PositionKind::kAlibi),
      std::move(bias_max),
      positions("rope", PositionKind::kRope),
      mapped("clip_qkv", &MptConfig::clip_qkv, positive),
      mapped("qk_ln", &MptConfig::qk_ln),
      mapped("qk_gn", &MptConfig::qk_gn),
      std::move(dropout),
      mapped("softmax_scale", &MptConfig::softmax_scale, positive),
      mapped("attn_logit_softcapping", &MptConfig::attn_softcap, positive),
      mapped("sliding_window_size", &MptConfig::sliding_window, at_least(-1)),
      must_be<MptConfig>("prefix_lm", {false}, "prefix attention is not supported"),
      must_be<MptConfig>("nope", {false}, "LLM Foundry has it in block_overrides only"),
      must_be<MptConfig>("kv_dim", {nullptr}, "shared keys and values are not supported"),
      must_be<MptConfig>("reuse_kv_layer_idx", {nullptr}, "LLM Foundry has it in block_overrides only"),
      must_be<MptConfig>("reuse_kv_x_layer_idx", {nullptr}, "LLM Foundry has it in block_overrides only"),
      {"attn_temperature_tuning",
       [](const JsonPath& place, MptConfig& model) {
         read_temperature_tuning(place, model.temperature_tuning);
       },
       temperature_tuning_json}};
  for (MptKey& key : foundry_rope_keys()) table.push_back(std::move(key));
  table.push_back({"attn_impl", {}, attention_implementation});
  table.push_back({"fused_qkv", {}, fused_qkv});
  add_irrelevant(table, {"attn_uses_sequence_id"});
  add_irrelevant(table, universal_hf_keys());
  return table;
}

void read_ffn_activation(const JsonPath& place, MptConfig& model) {
  if (place.json.is_null()) return;
  if (!check_object(place, "a table such as {\"name\": \"gelu\"}")) return;
  const Json none = "none", gelu = "gelu";
  const auto find = [&](const char* key, const Json& otherwise) -> const Json& {
    const auto found = place.json.find(key);
    return found == place.json.end() ? otherwise : *found;
  };
  const Json& name = find("name", gelu);
  read_hf_activation(place.child(name, "name"), model.activation);
  const bool tanh = find("approximate", none) == "tanh";
  if (tanh && name == "gelu") model.activation = Activation::kGeluTanh;
  check_keys(place, {"name", "approximate"});
}

std::optional<Json> ffn_activation(const MptConfig& model) {
  const std::string name = hf_activation_name(model.activation);
  switch (model.activation.builtin) {
    case Activation::kGelu: return Json{{"name", "gelu"}, {"approximate", "none"}};
    case Activation::kGeluTanh: return Json{{"name", "gelu"}, {"approximate", "tanh"}};
    default: return Json{{"name", name}};
  }
}

MptTable ffn_table() {
  MptTable table = {mapped("ffn_type", &MptConfig::ffn),
                    mapped("ffn_hidden_size", &MptConfig::ffn_width, positive),
                    {"ffn_act_fn", read_ffn_activation, ffn_activation}};
  const char* moe = "mixtures of experts are not supported: import a dense model";
  for (const char* key :
       {"moe_num_experts", "moe_top_k", "moe_world_size", "moe_jitter_eps", "moe_loss_weight",
        "moe_normalize_expert_weights", "moe_weight_parallelism", "uniform_expert_assignment"})
    table.push_back(must_be<MptConfig>(key, {nullptr}, moe));
  add_irrelevant(table, {"fc_type"});
  return table;
}

/// Maps a field of MptInitConfig. Read only when LLM Foundry uses it, although it writes all fields for every
/// scheme.
template <class T>
MptKey init_key(const char* name, T MptInitConfig::*member, const Rule& rule,
                std::function<bool(const MptInitConfig&)> used = {}) {
  const auto read = [=](const JsonPath& place, MptConfig& model) {
    if (!used || used(model.init)) read_value(place, rule, model.init.*member);
  };
  return {name, read,
          [=](const MptConfig& model) -> std::optional<Json> { return to_json(model.init.*member); }};
}

/// Reads a number, or the two ends of a range.
void read_uniform_limit(const JsonPath& place, MptConfig& model) {
  if (model.init.emb_init_std || model.init.name == InitScheme::kDefault) return;
  if (place.json.is_array())
    read_value(place, {}, model.init.emb_init_uniform_range);
  else
    read_value(place, positive, model.init.emb_init_uniform_lim);
}

std::optional<Json> uniform_limit(const MptConfig& model) {
  return model.init.emb_init_uniform_range ? to_json(model.init.emb_init_uniform_range)
                                           : to_json(model.init.emb_init_uniform_lim);
}

/// Reads true, false, or the divisor.
void read_residual_divisor(const JsonPath& place, MptConfig& model) {
  if (model.init.name == InitScheme::kDefault || model.init.name == InitScheme::kNeox) return;
  if (place.json.is_number())
    read_value(place, positive, model.init.residual_divisor);
  else
    read_value(place, {}, model.init.init_div_is_residual);
}

std::optional<Json> residual_divisor(const MptConfig& model) {
  return model.init.residual_divisor ? to_json(model.init.residual_divisor)
                                     : to_json(model.init.init_div_is_residual);
}

MptTable init_table() {
  const auto is_kaiming = [](const MptInitConfig& init) {
    return init.name == InitScheme::kKaimingNormal || init.name == InitScheme::kKaimingUniform;
  };
  const auto is_xavier = [](const MptInitConfig& init) {
    return init.name == InitScheme::kXavierNormal || init.name == InitScheme::kXavierUniform;
  };
  MptKey gain = init_key("init_gain", &MptInitConfig::init_gain, positive);
  gain.read = [=](const JsonPath& place, MptConfig& model) {
    const bool slope = is_kaiming(model.init) && model.init.init_nonlinearity == GainOf::kLeakyRelu;
    if (is_xavier(model.init) || (slope && place.json != 0))
      read_value(place, positive, model.init.init_gain);
  };
  gain.write = [=](const MptConfig& model) -> std::optional<Json> {
    return model.init.init_gain.value_or(is_xavier(model.init) ? 1 : 0);
  };
  MptTable table = {init_key("name", &MptInitConfig::name, {}),
                    init_key("init_std", &MptInitConfig::init_std, positive,
                             [](const MptInitConfig& init) { return init.name == InitScheme::kBaseline; }),
                    init_key("fan_mode", &MptInitConfig::fan_mode, {}, is_kaiming),
                    init_key("init_nonlinearity", &MptInitConfig::init_nonlinearity, {}, is_kaiming),
                    std::move(gain),
                    init_key("emb_init_std", &MptInitConfig::emb_init_std, positive,
                             [](const MptInitConfig& init) { return init.name != InitScheme::kDefault; }),
                    {"emb_init_uniform_lim", read_uniform_limit, uniform_limit},
                    {"init_div_is_residual", read_residual_divisor, residual_divisor}};
  add_irrelevant(table, {"verbose"});
  return table;
}

void read_logit_scale(const JsonPath& place, MptConfig& model) {
  if (place.json == "inv_sqrt_d_model")
    model.logit_scale = 1.0 / std::sqrt(static_cast<double>(model.width));
  else
    read_value(place, positive, model.logit_scale);
}

MptKey learned_positions() {
  MptKey key = positions("learned_pos_emb", PositionKind::kLearned);
  key.read = [](const JsonPath& place, MptConfig& model) {
    bool learned = true;
    read_value(place, {}, learned);
    model.positions = learned ? PositionKind::kLearned : PositionKind::kNone;
  };
  return key;
}

MptKey init_group() { return group("init_config", init_table()); }

MptKey attention_group() {
  MptKey key = group("attn_config", mpt_attention_table());
  key.read = [read = key.read](const JsonPath& place, MptConfig& model) {
    read(JsonPath{with_chosen_rope(place.json), place.path, place.problems}, model);
  };
  return key;
}

MptTable make_mpt_table() {
  MptKey ratio = mapped("expansion_ratio", &MptConfig::expansion_ratio, positive);
  ratio.write = [](const MptConfig& model) -> std::optional<Json> {
    return whole_if_possible(model.expansion_ratio);
  };
  MptKey logit_scale = mapped("logit_scale", &MptConfig::logit_scale);
  logit_scale.read = read_logit_scale;
  MptKey bias = mapped("attention_bias", &MptConfig::attention_bias);
  MptKey epsilon = mapped("layer_norm_epsilon", &MptConfig::norm_eps, positive);
  MptTable table = {
      mapped("d_model", &MptConfig::width, positive),
      mapped("n_heads", &MptConfig::heads, positive),
      mapped("n_layers", &MptConfig::layers, positive),
      mapped("head_dim", &MptConfig::head_width, positive),
      std::move(ratio),
      mapped("max_seq_len", &MptConfig::max_seq_len, positive),
      mapped("vocab_size", &MptConfig::vocab_size, positive),
      mapped("resid_pdrop", &MptConfig::resid_dropout, below(0, 1)),
      mapped("emb_pdrop", &MptConfig::embedding_dropout, below(0, 1)),
      learned_positions(),
      attention_group(),
      group("ffn_config", ffn_table()),
      init_group(),
      std::move(logit_scale),
      mapped("final_logit_softcapping", &MptConfig::final_softcap, positive),
      mapped("no_bias", &MptConfig::no_bias),
      std::move(bias),
      mapped("embedding_fraction", &MptConfig::embedding_fraction, combine({positive, at_most(1)})),
      mapped("norm_type", &MptConfig::norm),
      std::move(epsilon),
      mapped("norm_eps", &MptConfig::norm_eps, positive),
      mapped("tie_word_embeddings", &MptConfig::tied),
      {"block_overrides",
       [](const JsonPath& place, MptConfig& model) {
         read_block_overrides(place, model.layers, model.temperature_tuning, model.blocks);
       },
       block_overrides_json},
      must_be<MptConfig>("fuse_norm_attn_norm", {false}, "export the model without it")};
  add_irrelevant(table, {"init_device", "verbose", "fc_type", "loss_fn", "use_pad_tok_in_ffn",
                         "tokenizer_name", "initializer_range", "allow_embedding_resizing"});
  return table;
}

}  // namespace

const HfFamily<MptConfig>& hf_family(const MptConfig&) {
  static const HfFamily<MptConfig> family = {
      "mpt", {"MptForCausalLM", "MPTForCausalLM", "MptModel"}, {}, make_mpt_table()};
  return family;
}

const HfTable<MptConfig>& mpt_init_hf_table() {
  static const HfTable<MptConfig> table = {init_group()};
  return table;
}

Json with_mpt_defaults(Json json) {
  const Json architectures = json.value("architectures", Json::array());
  const bool foundry =
      json.contains("ffn_config") || json.contains("init_config") ||
      std::find(architectures.begin(), architectures.end(), "MPTForCausalLM") != architectures.end();
  if (foundry) return json;
  if (!json.contains("no_bias")) json["no_bias"] = true;
  if (!json.contains("attn_config") || json["attn_config"].is_null()) json["attn_config"] = Json::object();
  Json& attention = json["attn_config"];
  if (attention.is_object() && !attention.contains("alibi")) attention["alibi"] = true;
  return json;
}

std::vector<std::string> beyond_transformers_mpt(const MptConfig& c) {
  std::vector<std::string> found;
  const auto note = [&](bool beyond, const char* what) {
    if (beyond) found.emplace_back(what);
  };
  note(c.positions != PositionKind::kAlibi, "positions other than ALiBi");
  note(c.positions == PositionKind::kAlibi && c.alibi_bias_max != 8, "alibi_bias_max other than 8");
  note(!c.no_bias || c.attention_bias.value_or(false), "biases");
  note(c.num_kv_heads() != c.heads, "fewer key and value heads than query heads");
  note(c.head_dim() * c.heads != c.width, "head_dim");
  note(c.ffn != MptFfn::kMlp || c.hidden() != 4 * c.width,
       "a feed-forward other than mptmlp of width 4 d_model");
  note(c.activation != Activation::kGelu, "an activation other than exact GELU");
  note(c.norm != MptNorm::kLowPrecisionLayerNorm && c.norm != MptNorm::kLayerNorm, "RMSNorm");
  note(c.qk_ln || c.qk_gn, "norms of queries and keys");
  note(c.attn_softcap || c.final_softcap, "soft caps");
  note(c.sliding_window >= 0, "a sliding window");
  note(c.xpos_scale_base.has_value(), "xPos");
  note(c.temperature_tuning.attn_scale.value_or(0) > 0, "temperature tuning");
  note(!c.blocks.order.empty(), "blocks that differ");
  note(c.logit_scale.value_or(1) != 1, "logit_scale");
  return found;
}

}  // namespace tycho
