// Chooses the family of a config.json and reads it by that family's table.
#include "trainer/huggingface/hf_config.h"

#include <fmt/ranges.h>

#include <concepts>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/families/check.h"
#include "trainer/families/hf_family.h"
#include "trainer/families/mpt_hf.h"
#include "trainer/huggingface/text_config.h"
#include "trainer/recipe/config_io.h"
#include "trainer/recipe/config_rules.h"

namespace tycho {
namespace {

/// Returns the family's keys and those that every config.json may have.
template <class Family>
HfTable<Family> whole_table(const HfTable<Family>& own) {
  HfTable<Family> table = own;
  add_irrelevant(table, universal_hf_keys());
  table.push_back(must_be<Family>("quantization_config", {nullptr},
                                  "import the model that it was made from, in bf16, fp16 or fp32"));
  table.push_back(must_be<Family>("is_encoder_decoder", {false}, "only decoders can be imported"));
  return table;
}

void check_architecture(const Json& json, std::vector<ConfigProblem>& problems) {
  std::vector<std::string> known;
  for_each_family(ModelConfig{}, [&](const auto& family) {
    known.insert(known.end(), family.architectures.begin(), family.architectures.end());
  });
  const Json given = json.value("architectures", Json());
  if (given.is_null() || (given.is_array() && given.empty())) return;
  for (const std::string& one : known)
    if (given.is_array() && given[0] == one) return;
  problems.push_back({"architectures", fmt::format("{} cannot be imported; Tycho reads {}", given.dump(),
                                                   fmt::join(known, ", "))});
}

/// Resets the fields that a recipe would leave out, because they are defaults or have no effect.
void leave_out_defaults(RopeScalingConfig& rope, bool counts_lengths) {
  const RopeScalingConfig given = rope;
  rope = {};
  rope.type = given.type;
  const bool yarn = given.type == RopeScaling::kYarn, longrope = given.type == RopeScaling::kLongrope;
  const bool rescaled = given.type != RopeScaling::kNone && given.type != RopeScaling::kLinear;
  if (rescaled || counts_lengths) rope.original_max_seq_len = given.original_max_seq_len;
  if (given.type == RopeScaling::kNone) return;
  rope.factor = given.factor;
  if (given.type == RopeScaling::kLlama3)
    rope.low_freq_factor = given.low_freq_factor, rope.high_freq_factor = given.high_freq_factor;
  if (yarn || longrope) rope.attention_factor = given.attention_factor;
  if (yarn) {
    rope.beta_fast = given.beta_fast, rope.beta_slow = given.beta_slow, rope.truncate = given.truncate;
    if (!rope.attention_factor && given.mscale && given.mscale_all_dim)
      rope.mscale = given.mscale, rope.mscale_all_dim = given.mscale_all_dim;
  }
  if (longrope) rope.short_factor = given.short_factor, rope.long_factor = given.long_factor;
}

/// Resets a window that no block has, and a list of blocks that are all alike.
void leave_out_idle_windows(WindowedConfig& model) {
  int64_t sliding = 0;
  for (int64_t i = 0; i < model.layers; ++i) sliding += model.layer_type(i) == LayerType::kSliding ? 1 : 0;
  if (sliding == 0) model.sliding_window.reset();
  if (sliding == 0 || sliding == model.layers) model.layer_types.clear();
}

template <class Family>
void leave_out_defaults(Family& model) {
  if constexpr (requires { model.kv_heads; }) {
    if (model.kv_heads == model.heads) model.kv_heads.reset();
    if (!Family().head_width && model.head_width == model.width / model.heads) model.head_width.reset();
    leave_out_defaults(model.rope_scaling, std::same_as<Family, Ministral3Config>);
  }
  if constexpr (std::derived_from<Family, WindowedConfig>) leave_out_idle_windows(model);
  if constexpr (std::same_as<Family, GraniteConfig>)
    if (model.attention_multiplier == 1 / static_cast<double>(model.head_dim()))
      model.attention_multiplier.reset();
  if constexpr (std::same_as<Family, MptConfig>) {
    if (model.ffn_width) model.expansion_ratio = MptConfig().expansion_ratio;
    if (model.positions != PositionKind::kRope)
      model.rope_scaling = {}, model.rope_theta = MptConfig().rope_theta, model.xpos_scale_base.reset();
    if (model.positions != PositionKind::kAlibi) model.alibi_bias_max = MptConfig().alibi_bias_max;
    if (model.temperature_tuning.attn_scale.value_or(0) == 0) model.temperature_tuning = {};
  }
}

/// Reads config.json's initialisation separately, so that its problems become notes.
Json without_unread_init(const Json& json, std::vector<std::string>& notes) {
  const auto init = json.find("init_config");
  if (init == json.end()) return json;
  std::vector<ConfigProblem> problems;
  MptConfig model;
  read_table(JsonPath{Json{{"init_config", *init}}, "", problems}, mpt_init_hf_table(), model);
  ModelConfig whole;
  whole.value = model;
  if (problems.empty()) {
    ConfigProblems found;
    check(whole, found);
    problems = found.take();
  }
  if (problems.empty()) return json;
  for (const ConfigProblem& problem : problems)
    notes.push_back(
        fmt::format("{} {}: no effect, because weights are loaded", problem.path, problem.message));
  Json rest = json;
  rest.erase("init_config");
  return rest;
}

/// Returns the document without keys that are ignored on purpose.
template <class Family>
Json without_ignored(Json document, const HfTable<Family>& table, const std::vector<std::string>& ignore,
                     std::vector<ConfigProblem>& problems) {
  for (const std::string& name : ignore) {
    const bool known = std::ranges::any_of(table, [&](const auto& key) { return key.name == name; });
    if (known)
      problems.push_back({name, "cannot be ignored: Tycho knows this key; remove it from ignore"});
    else if (document.erase(name) == 0)
      problems.push_back({name, "is to be ignored, but is not a key of this file; remove it from ignore"});
  }
  return document;
}

/// Checks the rules of a family, for single fields and between them.
void check_model(const ModelConfig& model, std::vector<ConfigProblem>& problems) {
  TrainConfig config;
  config.model = model;
  config.seq_len = 1;
  std::vector<ConfigProblem> found;
  read_config(config_to_json(config), found);
  for (const ConfigProblem& problem : found)
    if (problem.path.starts_with("model")) problems.push_back(problem);
}

std::vector<std::string> training_notes(const Json& json) {
  if (json.contains(kTextOf))
    return {fmt::format("{} reads images too; that part is left out, and the model reads text",
                        json[kTextOf].get<std::string>())};
  const Json attention = json.value("attn_config", Json());
  if (!attention.is_object() || attention.value("attn_uses_sequence_id", Json()) != true) return {};
  return {
      "attn_uses_sequence_id = true: to train like this, set train_data.eos_token_id or bos_token_id, which "
      "keeps attention within documents"};
}

/// Returns what Tycho does not have yet of a family that it may have one day; "" for any other.
std::string not_yet(const std::string& model_type) {
  static const std::pair<const char*, const char*> kMissing[] = {
      {"qwen3_next", "gated linear attention"},
      {"qwen3_5", "gated linear attention"},
      {"qwen2_moe", "mixtures of experts"},
      {"qwen3_moe", "mixtures of experts"},
      {"mixtral", "mixtures of experts"},
      {"olmoe", "mixtures of experts"},
      {"granitemoehybrid", "Granite 4's state-space blocks"},
      {"granitemoe", "mixtures of experts"},
      {"deepseek", "latent attention"},
      {"gemma4", "Gemma 4"},
      {"gemma3n", "Gemma 3n"},
      {"lfm2", "short convolutions"}};
  for (const auto& [start, what] : kMissing)
    if (model_type.starts_with(start)) return fmt::format(": Tycho does not have {} yet", what);
  return "";
}

[[noreturn]] void fail_with(const std::vector<ConfigProblem>& problems, const std::string& place) {
  std::string text;
  for (const ConfigProblem& problem : problems)
    text += fmt::format("\n  {}: {}", problem.path, problem.message);
  fail(ExitCode::kUnusable, "[convert] {} cannot be read as a Tycho model:{}", place, text);
}

}  // namespace

HfConfig read_hf_config(const Json& given, const std::string& place, HfStart start,
                        const std::vector<std::string>& ignore) {
  const Json json = text_config_of(given);
  std::vector<ConfigProblem> problems;
  if (!json.is_object()) fail(ExitCode::kUnusable, "[convert] {} is not a JSON object", place);
  check_architecture(json, problems);
  const Json type = json.value("model_type", Json());
  HfConfig config;
  bool found = false;
  std::vector<std::string> known;
  for_each_family(config.model, [&]<class Family>(const HfFamily<Family>& family) {
    known.push_back(fmt::format("\"{}\"", family.model_type));
    if (type != family.model_type) return;
    found = true;
    Json document = family.canonical(without_ignored(json, whole_table(family.table), ignore, problems));
    if constexpr (std::same_as<Family, MptConfig>) {
      document = with_mpt_defaults(std::move(document));
      if (start == HfStart::kItsWeights) document = without_unread_init(document, config.notes);
    }
    Family model = family.defaults;
    read_table(JsonPath{document, "", problems}, whole_table(family.table), model);
    if (problems.empty()) leave_out_defaults(model);
    config.model.value = std::move(model);
  });
  if (!found)
    fail(ExitCode::kUnusable, "[convert] {}: model_type is {}{}; Tycho reads {}", place, type.dump(),
         type.is_string() ? not_yet(type.get<std::string>()) : "", fmt::join(known, ", "));
  if (problems.empty()) check_model(config.model, problems);
  if (!problems.empty()) fail_with(problems, place);
  for (std::string& note : training_notes(json)) config.notes.push_back(std::move(note));
  return config;
}

namespace {

/// Keeps settings of the imported file that are not part of Tycho's model: projections in one matrix or
/// three, the kind of rotation, and whether rows hold documents.
void keep_imported_form(const MptConfig& model, const Json& imported, Json& json) {
  const Json given = imported.is_object() ? imported.value("attn_config", Json()) : Json();
  if (!given.is_object()) return;
  Json& attention = json["attn_config"];
  if (given.value("fused_qkv", Json()) == false) attention["fused_qkv"] = false;
  if (given.value("attn_uses_sequence_id", Json()) == true) attention["attn_uses_sequence_id"] = true;
  const bool rotates =
      model.positions == PositionKind::kRope && model.rope_scaling.type == RopeScaling::kNone;
  if (rotates && given.value("rope", Json()) == true && given.value("rope_impl", Json("dail")) == "dail" &&
      model.heads * model.head_dim() == model.width)
    attention["rope_impl"] = "dail";
}

void finish_mpt(const MptConfig& model, const Json& imported, HfConfigText& text) {
  keep_imported_form(model, imported, text.json);
  std::vector<std::string> beyond = beyond_transformers_mpt(model);
  if (text.json["attn_config"].contains("fused_qkv")) beyond.emplace_back("projections that are not fused");
  if (beyond.empty()) return;
  text.json["architectures"] = {"MPTForCausalLM"};
  text.warnings.push_back(
      fmt::format("transformers' own MPT does not support {}: load this model with LLM Foundry's MPT",
                  fmt::join(beyond, ", ")));
  if (model.width % model.heads != 0)
    text.warnings.push_back("LLM Foundry needs d_model to be a multiple of n_heads");
  if (text.json["attn_config"]["rope"] == true && text.json["attn_config"]["rope_impl"] == "dail")
    text.warnings.push_back("rope_impl is dail, for which LLM Foundry needs flash-attn");
}

}  // namespace

/// Returns the keys of a dense model that its config.json cannot say, such as kinds of blocks of a class
/// whose blocks are all alike.
template <class Family>
std::vector<std::string> unwritten_keys(Family model, const Json& written) {
  leave_out_defaults(model);
  model.weights.clear();
  const Json wanted = to_json(model);
  Family found = hf_family(model).defaults;
  std::vector<ConfigProblem> problems;
  const HfFamily<Family>& hf = hf_family(model);
  read_table(JsonPath{hf.canonical(written), "", problems}, whole_table(hf.table), found);
  leave_out_defaults(found);
  const Json read = to_json(found);
  std::vector<std::string> keys;
  for (const auto& [key, value] : wanted.items())
    if (value != read.at(key)) keys.push_back(key);
  return keys;
}

HfConfigText write_hf_config(const ModelConfig& model, int64_t seq_len, const Json& imported) {
  HfConfigText text;
  const auto write = [&]<class Family>(Family family) {
    if constexpr (requires { family.max_seq_len.value_or(seq_len); })
      family.max_seq_len = family.max_seq_len.value_or(seq_len);
    const HfFamily<Family>& hf = hf_family(family);
    text.json = {{"architectures", Json::array({hf.architectures.front()})}, {"model_type", hf.model_type}};
    text.json.update(write_table(hf.table, family));
    text.json["use_cache"] = true;
    if constexpr (std::same_as<Family, MptConfig>) {
      finish_mpt(family, imported, text);
    } else if constexpr (std::same_as<Family, LlamaConfig>) {
      if (family.width % family.heads != 0)
        text.warnings.push_back("transformers needs hidden_size to be a multiple of num_attention_heads");
    } else if constexpr (std::derived_from<Family, DenseConfig>) {
      const std::vector<std::string> keys = unwritten_keys(family, text.json);
      if (!keys.empty())
        text.warnings.push_back(
            fmt::format("transformers' {} has no {} like this model's: it would compute something else",
                        hf.architectures.front(), fmt::join(keys, ", ")));
    }
  };
  std::visit(write, model.value);
  return text;
}

}  // namespace tycho
