// Derives what transformers needs besides tokenizer.json, if the import kept no such files.
#include "trainer/huggingface/hf_tokenizer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/data/tokenizer/special_tokens.h"
#include "trainer/huggingface/hf_folder.h"

namespace tycho {
namespace {

constexpr std::array kIdKeys = {"bos_token_id", "eos_token_id", "pad_token_id"};

struct SpecialTokens {
  std::string bos, eos, pad, unknown;
  Json ids = Json::object();
};

SpecialTokens find_special_tokens(const Tokenizer& tokenizer) {
  SpecialTokens tokens{.bos = find_bos_token(tokenizer),
                       .eos = find_eos_token(tokenizer),
                       .pad = tokenizer.info().pad,
                       .unknown = tokenizer.info().unknown};
  for (const auto& [key, token] :
       {std::pair("bos_token_id", &tokens.bos), {"eos_token_id", &tokens.eos}, {"pad_token_id", &tokens.pad}})
    if (!token->empty()) tokens.ids[key] = tokenizer.find(*token);
  return tokens;
}

/// Returns nullopt for a tokenizer that an import kept although Tycho cannot use it.
std::optional<SpecialTokens> read_special_tokens(const CheckpointReader& checkpoint) {
  try {
    if (const auto tokenizer = open_kept_tokenizer(checkpoint)) return find_special_tokens(*tokenizer);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUnusable) throw;
  }
  return std::nullopt;
}

std::string pretty(const Json& json) { return json.dump(2) + "\n"; }

/// Writes the class of the tokenizer: transformers reads a tokenizer.model with one of its classes, a
/// tokenizer.json with any.
void describe_tokenizer(const SpecialTokens& tokens, bool sentencepiece, HfTokenizerFiles& out) {
  Json map = Json::object();
  for (const auto& [key, token] : {std::pair("bos_token", &tokens.bos),
                                   {"eos_token", &tokens.eos},
                                   {"pad_token", &tokens.pad},
                                   {"unk_token", &tokens.unknown}})
    if (!token->empty()) map[key] = *token;
  Json config = map;
  config["clean_up_tokenization_spaces"] = false;
  config["tokenizer_class"] = sentencepiece ? "LlamaTokenizer" : "PreTrainedTokenizerFast";
  if (sentencepiece) config["add_bos_token"] = config["add_eos_token"] = config["legacy"] = false;
  out.files[kTokenizerConfigFile] = pretty(config);
  if (!out.files.contains(kSpecialTokensMapFile)) out.files[kSpecialTokensMapFile] = pretty(map);
}

bool names_tokens(const Json& config) {
  return std::any_of(kIdKeys.begin(), kIdKeys.end(), [&](const char* key) { return config.contains(key); });
}

}  // namespace

HfTokenizerFiles tokenizer_files(const CheckpointReader& checkpoint, const Json& kept_config) {
  HfTokenizerFiles out;
  out.token_ids = Json::object();
  for (const std::string& name : kept_hf_files())
    if (checkpoint.has_file(name)) out.files[name] = checkpoint.read_text_file(name);
  const std::optional<SpecialTokens> tokens = read_special_tokens(checkpoint);
  if (names_tokens(kept_config)) {
    for (const char* key : kIdKeys)
      if (kept_config.contains(key)) out.token_ids[key] = kept_config[key];
  } else {
    // Without them transformers takes those of a model that it knows, such as 2 for the end, or a padding
    // token that the vocabulary may not have.
    if (kept_config.empty())
      for (const char* key : kIdKeys) out.token_ids[key] = nullptr;
    if (tokens) out.token_ids.update(tokens->ids);
  }
  if (tokens && !out.files.contains(kTokenizerConfigFile))
    describe_tokenizer(*tokens, kept_tokenizer(checkpoint) == kSentencePieceFile, out);
  if (!out.files.contains(kGenerationConfig)) {
    Json generation = {{"_from_model_config", true}};
    for (const auto& [key, id] : out.token_ids.items())
      if (!id.is_null()) generation[key] = id;
    out.files[kGenerationConfig] = pretty(generation);
  }
  return out;
}

std::vector<int32_t> end_of_text_ids(const std::string& generation_config, const std::string& place) {
  const Json json = parse_json(generation_config, place);
  const Json ids = json.is_object() ? json.value("eos_token_id", Json()) : Json();
  std::vector<int32_t> found;
  for (const Json& id : ids.is_array() ? ids : Json::array({ids}))
    if (id.is_number_integer()) found.push_back(id.get<int32_t>());
  return found;
}

void keep_tokenizer(const std::string& tokenizer, const TokenizerFilesBeside& beside,
                    std::map<std::string, std::string>& files) {
  const std::string name = tokenizer_file_name(tokenizer);
  const auto found = files.find(name);
  const bool same = found != files.end() && found->second == tokenizer;
  if (!same) {
    for (const char* other : {kTokenizerFile, kSentencePieceFile, "vocab.json", "merges.txt",
                              "chat_template.jinja", kGenerationConfig})
      files.erase(other);
    if (const auto config = files.find(kKeptHfConfig); config != files.end()) {
      Json json = parse_json(config->second, kKeptHfConfig);
      for (const char* key : kIdKeys) json.erase(key);
      config->second = pretty(json);
    }
  }
  // A checkpoint that keeps both files goes by the tokenizer.json.
  if (name == kSentencePieceFile) files.erase(kTokenizerFile);
  if (!same || !beside.empty())
    for (const char* other : {kTokenizerConfigFile, kSpecialTokensMapFile, kAddedTokensFile})
      files.erase(other);
  files[name] = tokenizer;
  files.insert(beside.begin(), beside.end());
}

std::string too_many_tokens(const std::string& place, int64_t num_tokens, int64_t vocab_size) {
  return fmt::format(
      "{} has {} tokens, the model {}: the model has nothing for ids from {} on, and a recipe for it cannot "
      "name this tokenizer",
      place, num_tokens, vocab_size, vocab_size);
}

}  // namespace tycho
