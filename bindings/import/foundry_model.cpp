// LLM Foundry's `model:` -> t.model.*.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "bindings/import/systems.h"

namespace tycho {
namespace {

using Kind = DocScalar::Kind;

const char* const kMoe = "mixtures of experts are not supported";
const char* const kWhere = "weights are created on their device";
const char* const kKernel = "Tycho chooses its kernels";

bool is_true(Mapper& mapper, const DocNode* map, const char* key) {
  const DocNode* node = map == nullptr ? nullptr : map->find(key);
  return node != nullptr && mapper.text_of(node) == "true";
}

const DocNode* attention(Mapper& mapper) { return mapper.root().at("model.attn_config"); }

/// Maps a boolean: true chooses these positions; false leaves them to the other keys.
Row positions(const char* key, const char* kind) {
  return by(key, [=](Mapper& mapper, const DocEntry& entry) {
    if (mapper.text_of(&entry.node) != "true") return mapper.remark(entry, "see positions");
    mapper.emit(entry, "positions", lua_quoted(kind));
  });
}

/// Maps a key that has an effect only when another key is true; otherwise it becomes a comment.
Row beside(const char* key, const char* switch_key, const char* target) {
  return by(key, [=](Mapper& mapper, const DocEntry& entry) {
    if (!is_true(mapper, attention(mapper), switch_key)) return mapper.remark(entry, "has no effect here");
    to(key, target).act(mapper, entry);
  });
}

void map_learned_positions(Mapper& mapper, const DocEntry& entry) {
  const bool others =
      is_true(mapper, attention(mapper), "alibi") || is_true(mapper, attention(mapper), "rope");
  if (others || mapper.text_of(&entry.node) != "false") return mapper.remark(entry, "see positions");
  mapper.emit(entry, "positions", "\"none\"");
}

void map_attention_type(Mapper& mapper, const DocEntry& entry) {
  const std::string type = mapper.text_of(&entry.node);
  if (type == "multiquery_attention") return mapper.emit(entry, "kv_heads", "1");
  if (type == "multihead_attention" || type == "grouped_query_attention")
    return mapper.remark(entry, "taken from kv_heads");
  mapper.problem(entry, "Tycho has multihead_attention, grouped_query_attention and multiquery_attention");
}

/// Returns true when rope_impl is `wanted`, which decides between rope_dail_config and rope_hf_config.
bool rope_impl_is(Mapper& mapper, const char* wanted) {
  if (!is_true(mapper, attention(mapper), "rope")) return false;
  const DocNode* impl = attention(mapper)->find("rope_impl");
  return (mapper.is_null(impl) ? "dail" : mapper.text_of(impl)) == wanted;
}

bool has_xpos(Mapper& mapper) {
  const DocNode* type = mapper.root().at("model.attn_config.rope_dail_config.type");
  return rope_impl_is(mapper, "dail") && type != nullptr && mapper.text_of(type) == "xpos";
}

/// Maps head_dim. dail rotates d_model / n_heads numbers of a head, whatever head_dim says.
void map_head_dim(Mapper& mapper, const DocEntry& entry) {
  if (mapper.is_null(&entry.node)) return mapper.remark(entry, "the default");
  const auto whole = [&](const char* path) {
    return std::strtoll(mapper.text_of(mapper.root().at(path)).c_str(), nullptr, 10);
  };
  const bool usual = whole("model.head_dim") * whole("model.n_heads") == whole("model.d_model");
  if (rope_impl_is(mapper, "dail") && !usual)
    return mapper.problem(
        entry, "rope_impl dail would rotate only d_model / n_heads elements of each head: set rope_impl: hf");
  mapper.emit(entry, "head_width", mapper.expression(entry));
}

/// Maps kv_n_heads, which LLM Foundry's other kinds of attention do not accept.
void map_kv_heads(Mapper& mapper, const DocEntry& entry) {
  if (mapper.is_null(&entry.node)) return mapper.remark(entry, "the default");
  const DocNode* type = mapper.root().at("model.attn_config.attn_type");
  if (type != nullptr && mapper.text_of(type) == "multiquery_attention")
    return mapper.problem(entry, "cannot be combined with multiquery_attention, which has one key head");
  if (type == nullptr || mapper.text_of(type) != "grouped_query_attention")
    return mapper.problem(entry, "is for attn_type: grouped_query_attention");
  mapper.emit(entry, "kv_heads", mapper.expression(entry));
}

void map_dail_type(Mapper& mapper, const DocEntry& entry) {
  const bool original = mapper.text_of(&entry.node) == "original";
  if (original || !rope_impl_is(mapper, "dail")) return mapper.remark(entry, "no xPos");
  if (!has_xpos(mapper)) return mapper.problem(entry, "LLM Foundry has original and xpos");
  if (mapper.root().at("model.attn_config.rope_dail_config.xpos_scale_base") != nullptr)
    return mapper.remark(entry, "taken from xpos_scale_base");
  mapper.emit(entry, "xpos_scale_base", "512");
}

void map_xpos_scale_base(Mapper& mapper, const DocEntry& entry) {
  if (!has_xpos(mapper)) return mapper.remark(entry, "no xPos");
  to("xpos_scale_base", "xpos_scale_base").act(mapper, entry);
}

void map_rope_scaling(Mapper& mapper, const DocEntry& entry) {
  const DocNode* type = entry.node.find("type");
  const bool none = type == nullptr || mapper.text_of(type) == "no_scaling";
  if (none || !rope_impl_is(mapper, "hf")) return mapper.remark(entry, "no scaling");
  const std::string kind = mapper.text_of(type);
  const auto used = [](bool is_used, const char* key, const char* target) {
    return is_used ? to(key, target) : left_out(key, "has no effect here");
  };
  const bool llama3 = kind == "llama3";
  const Rows rows = {
      to("type", "type", words({{"linear", "linear"}, {"dynamic", "dynamic"}, {"llama3", "llama3"}})),
      to("factor", "factor"), used(llama3, "low_freq_factor", "low_freq_factor"),
      used(llama3, "high_freq_factor", "high_freq_factor"),
      used(llama3 || kind == "dynamic", "original_max_position_embeddings", "original_max_seq_len")};
  mapper.component(entry, "rope_scaling", "", rows);
}

void map_activation(Mapper& mapper, const DocEntry& entry) {
  const DocNode* name = entry.node.find("name");
  const DocNode* form = entry.node.find("approximate");
  std::string given = name == nullptr ? "gelu" : mapper.text_of(name);
  for (const auto& [key, value] : entry.node.entries) {
    if (key != "name" && key != "approximate")
      return mapper.problem({entry.path + "." + key, value}, "this option is not supported");
  }
  if (given == "gelu" && form != nullptr && mapper.text_of(form) == "tanh") given = "gelu_tanh";
  const auto known = {"gelu", "gelu_tanh", "quick_gelu", "relu", "silu"};
  if (std::find(known.begin(), known.end(), given) == known.end())
    return mapper.problem(entry, "Tycho has gelu, quick_gelu, relu and silu");
  mapper.emit(entry, "activation", lua_quoted(given));
}

void map_expansion_ratio(Mapper& mapper, const DocEntry& entry) {
  const bool width_given = !mapper.is_null(mapper.root().at("model.ffn_config.ffn_hidden_size"));
  if (width_given) return mapper.remark(entry, "taken from ffn_hidden_size");
  to("", "expansion_ratio").act(mapper, entry);
}

void map_logit_scale(Mapper& mapper, const DocEntry& entry) {
  const DocNode* width = mapper.root().at("model.d_model");
  if (mapper.text_of(&entry.node) != "inv_sqrt_d_model" || width == nullptr)
    return to("logit_scale", "logit_scale").act(mapper, entry);
  mapper.emit(entry, "logit_scale", "1 / math.sqrt(" + mapper.expression({"model.d_model", *width}) + ")");
}

/// Maps temperature tuning, which is off with its default scale of 0.
void map_temperature(Mapper& mapper, const DocEntry& entry) {
  const DocNode* scale = entry.node.is_map() ? entry.node.find("attn_scale") : nullptr;
  const bool none = entry.node.is_scalar() && mapper.is_null(&entry.node);
  const bool zero = entry.node.is_map() &&
                    (mapper.is_null(scale) || std::strtod(mapper.text_of(scale).c_str(), nullptr) == 0);
  if (none || zero) return mapper.remark(entry, "is off");
  mapper.component(entry, "temperature_tuning", "",
                   {to("attn_scale", "attn_scale"), to("floor_scale", "floor_scale")});
}

/// Maps attn_uses_sequence_id. The data says where documents end; attention then stays within them.
void map_sequence_ids(Mapper& mapper, const DocEntry& entry) {
  if (mapper.text_of(&entry.node) != "true") return mapper.remark(entry, "attention spans the whole row");
  const DocNode* loader = mapper.root().at("train_loader.name");
  if (loader != nullptr && mapper.text_of(loader) == "finetuning")
    return mapper.remark(entry, "attention stays within the examples of a packed row");
  for (const char* key : {"eos_token_id", "bos_token_id"})
    if (!mapper.is_null(mapper.root().at(std::string("train_loader.dataset.") + key)))
      return mapper.remark(entry, "train_data defines where documents end");
  mapper.problem(
      entry, "needs eos_token_id or bos_token_id in train_loader.dataset, which marks where documents end");
}

const Rows kAttention = {
    by("attn_type", map_attention_type),
    left_out("attn_impl", kKernel),
    by("kv_n_heads", map_kv_heads),
    to("attn_pdrop", "attn_dropout"),
    to("clip_qkv", "clip_qkv"),
    to("qk_ln", "qk_ln"),
    to("qk_gn", "qk_gn"),
    left_out("fused_qkv", "weights are split if necessary"),
    to("softmax_scale", "softmax_scale"),
    to("attn_logit_softcapping", "attn_softcap"),
    by("attn_uses_sequence_id", map_sequence_ids),
    to("sliding_window_size", "sliding_window"),
    positions("alibi", "alibi"),
    beside("alibi_bias_max", "alibi", "alibi_bias_max"),
    positions("rope", "rope"),
    beside("rope_theta", "rope", "rope_theta"),
    left_out("rope_impl", kKernel),
    group("rope_dail_config", {by("type", map_dail_type), left_out("pos_idx_in_fp32", "always the case"),
                               by("xpos_scale_base", map_xpos_scale_base)}),
    by("rope_hf_config", map_rope_scaling),
    only("nope", {"false"}, "LLM Foundry has it in block_overrides only"),
    by("attn_temperature_tuning", map_temperature),
    only("kv_dim", {"null"}, "is not supported"),
};

const Rows kFfn = {
    to("ffn_type", "ffn", words({{"mptmlp", "mptmlp"}, {"mptglu", "mptglu"}})),
    to("ffn_hidden_size", "ffn_width"),
    by("ffn_act_fn", map_activation),
    only("fc_type", {"torch"}, "Transformer Engine is not supported"),
    only("moe_num_experts", {"1"}, kMoe),
    only("moe_top_k", {"1"}, kMoe),
    only("moe_world_size", {"1"}, kMoe),
};

const Rows kMpt = {
    left_out("init_device", kWhere),
    to("d_model", "width"),
    to("n_heads", "heads"),
    to("n_layers", "layers"),
    by("head_dim", map_head_dim),
    by("expansion_ratio", map_expansion_ratio),
    to("max_seq_len", "max_seq_len"),
    to("vocab_size", "vocab_size"),
    to("resid_pdrop", "resid_dropout"),
    to("emb_pdrop", "embedding_dropout"),
    by("learned_pos_emb", map_learned_positions),
    group("attn_config", kAttention),
    group("ffn_config", kFfn),
    foundry_init_row(),
    to("no_bias", "no_bias"),
    to("attention_bias", "attention_bias"),
    to("norm_type", "norm",
       words({{"low_precision_layernorm", "low_precision_layernorm"},
              {"layernorm", "layernorm"},
              {"low_precision_rmsnorm", "low_precision_rmsnorm"},
              {"rmsnorm", "rmsnorm"},
              {"triton_rmsnorm", "rmsnorm"}})),
    to("norm_eps", "norm_eps"),
    by("logit_scale", map_logit_scale),
    to("final_logit_softcapping", "final_softcap"),
    to("embedding_fraction", "embedding_fraction"),
    to("tie_word_embeddings", "tied"),
    left_out("use_pad_tok_in_ffn", "there is no padding"),
    left_out("use_cache", "generation always does this"),
    only("fc_type", {"torch"}, "Transformer Engine is not supported"),
    left_out("loss_fn", kKernel),
    foundry_blocks_row(),
    left_out("fuse_norm_attn_norm", kKernel),
    left_out("use_train_metrics", "Tycho has its own metrics"),
    left_out("additional_train_metrics", "Tycho has its own metrics"),
    left_out("additional_eval_metrics", "Tycho has its own metrics"),
    left_out("verbose", "nothing is printed"),
};

/// Overrides of a Hugging Face config, by Hugging Face's keys.
const Rows kHfOverrides = {
    to("hidden_size", "width"),
    to("num_hidden_layers", "layers"),
    to("num_attention_heads", "heads"),
    to("num_key_value_heads", "kv_heads"),
    to("intermediate_size", "ffn_width"),
    to("head_dim", "head_width"),
    to("n_embd", "width"),
    to("n_layer", "layers"),
    to("n_head", "heads"),
    to("n_inner", "ffn_width"),
    to("vocab_size", "vocab_size"),
    to("max_position_embeddings", "max_seq_len"),
    to("n_positions", "max_seq_len"),
    to("max_seq_len", "max_seq_len"),
    to("rope_theta", "rope_theta"),
    to("rms_norm_eps", "norm_eps"),
    to("layer_norm_epsilon", "norm_eps"),
    to("tie_word_embeddings", "tied"),
    to("initializer_range", "init_std"),
    left_out("use_cache", "generation always does this"),
    group("attn_config", {left_out("attn_impl", kKernel), by("attn_uses_sequence_id", map_sequence_ids)}),
};

const Rows kHf = {
    elsewhere("pretrained_model_name_or_path"),
    elsewhere("pretrained"),
    left_out("init_device", kWhere),
    group("config_overrides", kHfOverrides),
    left_out("use_flash_attention_2", kKernel),
    left_out("attn_implementation", kKernel),
    foundry_peft_row(),
    only("pretrained_lora_id_or_path", {"null"},
         "adapters always start from scratch: merge those with peft's merge_and_unload() first"),
    left_out("should_save_peft_only", "checkpoints of adapters hold nothing else"),
    left_out("trust_remote_code", "no code is downloaded"),
    left_out("use_auth_token", "the token of huggingface_hub is used: HF_TOKEN, or `hf auth login`"),
    only("load_in_8bit", {"false"}, "is for inference"),
    left_out("allow_embedding_resizing", "taken from vocab_size"),
    left_out("use_train_metrics", "Tycho has its own metrics"),
    left_out("additional_train_metrics", "Tycho has its own metrics"),
    left_out("additional_eval_metrics", "Tycho has its own metrics"),
};

/// Published shapes of models that YAMLs name without a folder: field, value, and the key that overrides it.
struct Shape {
  const char* name;
  const char* constructor;
  std::vector<std::array<const char*, 3>> fields;
};

constexpr const char* kLlama31Scaling =
    "{ type = \"llama3\", factor = 8, low_freq_factor = 1, high_freq_factor = 4, original_max_seq_len = 8192 "
    "}";

std::vector<std::array<const char*, 3>> llama3(const char* width, const char* layers, const char* heads,
                                               const char* ffn_width, const char* max_seq_len, bool scaled) {
  std::vector<std::array<const char*, 3>> fields = {{"width", width, "hidden_size"},
                                                    {"layers", layers, "num_hidden_layers"},
                                                    {"heads", heads, "num_attention_heads"},
                                                    {"kv_heads", "8", "num_key_value_heads"},
                                                    {"ffn_width", ffn_width, "intermediate_size"},
                                                    {"vocab_size", "128256", "vocab_size"},
                                                    {"max_seq_len", max_seq_len, "max_position_embeddings"}};
  if (scaled) fields.push_back({"rope_scaling", kLlama31Scaling, "rope_scaling"});
  return fields;
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {"gpt2", "t.model.gpt2", {}},
      {"meta-llama/Meta-Llama-3-8B", "t.model.llama", llama3("4096", "32", "32", "14336", "8192", false)},
      {"meta-llama/Meta-Llama-3-70B", "t.model.llama", llama3("8192", "80", "64", "28672", "8192", false)},
      {"meta-llama/Llama-3.1-8B", "t.model.llama", llama3("4096", "32", "32", "14336", "131072", true)},
      {"meta-llama/Meta-Llama-3.1-8B", "t.model.llama", llama3("4096", "32", "32", "14336", "131072", true)},
      {"meta-llama/Llama-3.1-70B", "t.model.llama", llama3("8192", "80", "64", "28672", "131072", true)},
      {"meta-llama/Meta-Llama-3.1-70B", "t.model.llama", llama3("8192", "80", "64", "28672", "131072", true)},
  };
  return all;
}

/// Returns the fields of a published shape that config_overrides does not set.
std::vector<std::string> shape_fields(const Shape& shape, const DocNode& model) {
  const DocNode* overrides = model.find("config_overrides");
  std::vector<std::string> fields;
  for (const auto& [field, value, theirs] : shape.fields) {
    if (overrides == nullptr || overrides->find(theirs) == nullptr)
      fields.push_back(std::string(field) + " = " + value);
  }
  return fields;
}

void map_hf_model(Mapper& mapper, const DocEntry& entry) {
  const DocNode* path = entry.node.find("pretrained_model_name_or_path");
  if (mapper.is_null(path)) return mapper.problem(entry, "expected pretrained_model_name_or_path");
  const DocEntry path_entry = {entry.path + ".pretrained_model_name_or_path", *path};
  const std::string name = mapper.text_of(path);
  const DocNode* flag = entry.node.find("pretrained");
  const bool pretrained = flag == nullptr || mapper.text_of(flag) != "false";
  const auto shape =
      std::find_if(shapes().begin(), shapes().end(), [&](const Shape& one) { return name == one.name; });
  if (is_local_folder(name) || pretrained || shape == shapes().end()) {
    std::vector<std::string> fields = {"path = " + (is_local_folder(name)
                                                        ? mapper.expression(path_entry)
                                                        : mapper.expression_after("hf://", path_entry))};
    if (!pretrained) fields.emplace_back("pretrained = false");
    mapper.component(entry, "model", "t.model.hf", kHf, fields);
    return map_foundry_peft(mapper, entry);
  }
  refuse_foundry_peft(mapper, entry);
  mapper.component(entry, "model", shape->constructor, kHf, shape_fields(*shape, entry.node));
}

}  // namespace

const DocNode* foundry_sequence_ids(Mapper& mapper) {
  const DocNode* of_mpt = mapper.root().at("model.attn_config.attn_uses_sequence_id");
  return of_mpt ? of_mpt : mapper.root().at("model.config_overrides.attn_config.attn_uses_sequence_id");
}

const Rows& foundry_model_rows() {
  static const Rows all = [] {
    Rows rows = {elsewhere("name")};
    for (const Rows* part : {&kMpt, &kHf}) rows.insert(rows.end(), part->begin(), part->end());
    return rows;
  }();
  return all;
}

void map_foundry_model(Mapper& mapper, const DocEntry& entry) {
  const DocNode* name = entry.node.find("name");
  const std::string kind = name == nullptr ? "" : mapper.text_of(name);
  if (kind == "mpt_causal_lm") return mapper.component(entry, "model", "t.model.mpt", kMpt);
  if (kind == "hf_causal_lm") return map_hf_model(mapper, entry);
  mapper.problem(name == nullptr ? entry : DocEntry{"model.name", *name},
                 "Tycho has mpt_causal_lm and hf_causal_lm");
}

}  // namespace tycho
