// Keys and activations that the tables of config.json share.
#include "trainer/families/hf_family.h"

#include <fmt/ranges.h>

#include <cmath>

namespace tycho {

Json rope_scaling_json(const char* type_key, const RopeScalingConfig& rope) {
  Json json = {{type_key, enum_name(rope.type)}, {"factor", rope.factor}};
  if (rope.type == RopeScaling::kLlama3) {
    json["low_freq_factor"] = rope.low_freq_factor;
    json["high_freq_factor"] = rope.high_freq_factor;
  }
  const bool yarn = rope.type == RopeScaling::kYarn, longrope = rope.type == RopeScaling::kLongrope;
  if (rope.type == RopeScaling::kLlama3 || yarn || longrope)
    json["original_max_position_embeddings"] = rope.original_max_seq_len;
  if (rope.attention_factor) json["attention_factor"] = *rope.attention_factor;
  if (yarn) {
    json["beta_fast"] = rope.beta_fast, json["beta_slow"] = rope.beta_slow, json["truncate"] = rope.truncate;
    if (rope.mscale) json["mscale"] = *rope.mscale, json["mscale_all_dim"] = rope.mscale_all_dim.value_or(0);
  }
  if (longrope) json["short_factor"] = rope.short_factor, json["long_factor"] = rope.long_factor;
  return json;
}

const std::vector<std::string>& universal_hf_keys() {
  static const std::vector<std::string> keys = {
      "architectures", "model_type", "torch_dtype", "dtype", "transformers_version", "_name_or_path",
      "_commit_hash", "name_or_path", "auto_map", "use_cache", "bos_token_id", "eos_token_id", "pad_token_id",
      "sep_token_id", "decoder_start_token_id", "id2label", "label2id", "num_labels", "output_attentions",
      "output_hidden_states", "return_dict", "is_decoder", "is_encoder_decoder", "chunk_size_feed_forward",
      "cross_attention_hidden_size", "tie_encoder_decoder", "finetuning_task", "problem_type",
      "tokenizer_class", "prefix", "task_specific_params", "pruned_heads", "torchscript", "tf_legacy_loss",
      "use_bfloat16", "gradient_checkpointing", "_attn_implementation_autoset", "attn_implementation",
      "_attn_implementation", "unsloth_version", "unsloth_fixed", "experts_implementation",
      "tie_word_embeddings", "transformers.js_config", "text_of",
      // Generation, which transformers keeps in generation_config.json today.
      "max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups",
      "diversity_penalty", "temperature", "top_k", "top_p", "typical_p", "repetition_penalty",
      "length_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids",
      "num_return_sequences", "output_scores", "return_dict_in_generate", "forced_bos_token_id",
      "forced_eos_token_id", "remove_invalid_values", "exponential_decay_length_penalty", "suppress_tokens",
      "begin_suppress_tokens"};
  return keys;
}

void read_hf_activation(const JsonPath& place, FeedForwardActivation& activation) {
  static const std::vector<std::pair<std::string, Activation>> names = {
      {"gelu", Activation::kGelu},
      {"gelu_new", Activation::kGeluTanh},
      {"gelu_pytorch_tanh", Activation::kGeluTanh},
      {"quick_gelu", Activation::kQuickGelu},
      {"relu", Activation::kRelu},
      {"silu", Activation::kSilu},
      {"swish", Activation::kSilu}};
  std::vector<std::string> known;
  for (const auto& [name, value] : names) known.push_back(name);
  const int index = read_name(place, known);
  if (index >= 0) activation = names[static_cast<size_t>(index)].second;
}

Json whole_if_possible(double x) { return x == std::floor(x) ? Json(static_cast<int64_t>(x)) : Json(x); }

std::string hf_activation_name(const FeedForwardActivation& activation, const char* gelu_tanh) {
  if (activation.is_defined())
    fail(
        ExitCode::kRecipe,
        "[model.activation] expected an activation that Hugging Face has a name for, got the function at {}; "
        "train with {} to export, or keep the model in Tycho's own checkpoints",
        activation.code.at, fmt::join(enum_name_list<Activation>(), ", "));
  return activation.builtin == Activation::kGeluTanh ? gelu_tanh : enum_name(activation.builtin);
}

}  // namespace tycho
