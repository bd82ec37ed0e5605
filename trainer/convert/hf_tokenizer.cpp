// Derives what transformers needs besides tokenizer.json, if the import kept no such files.
#include "trainer/convert/hf_tokenizer.h"

#include <array>

#include "trainer/convert/hf_folder.h"
#include "trainer/data/tokenizer/special_tokens.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {
namespace {

constexpr std::array kIdKeys = {"bos_token_id", "eos_token_id", "pad_token_id"};

struct SpecialTokens {
  std::string bos, eos;
  Json ids = Json::object();
};

SpecialTokens find_special_tokens(const Tokenizer& tokenizer) {
  SpecialTokens tokens;
  tokens.eos = find_eos_token(tokenizer);
  tokens.bos = find_bos_token(tokenizer);
  if (!tokens.bos.empty()) tokens.ids["bos_token_id"] = tokenizer.find(tokens.bos);
  if (!tokens.eos.empty()) tokens.ids["eos_token_id"] = tokenizer.find(tokens.eos);
  return tokens;
}

std::string pretty(const Json& json) { return json.dump(2) + "\n"; }

void describe_tokenizer(const SpecialTokens& tokens, HfTokenizerFiles& out) {
  Json map = Json::object();
  if (!tokens.bos.empty()) map["bos_token"] = tokens.bos;
  if (!tokens.eos.empty()) map["eos_token"] = tokens.eos;
  Json config = map;
  config["clean_up_tokenization_spaces"] = false;
  config["tokenizer_class"] = "PreTrainedTokenizerFast";
  out.files["tokenizer_config.json"] = pretty(config);
  out.files["special_tokens_map.json"] = pretty(map);
}

}  // namespace

HfTokenizerFiles tokenizer_files(const CheckpointReader& checkpoint, const Json& kept_config) {
  HfTokenizerFiles out;
  out.token_ids = Json::object();
  for (const std::string& name : kept_hf_files())
    if (checkpoint.has_file(name)) out.files[name] = checkpoint.read_text_file(name);
  for (const char* key : kIdKeys)
    if (kept_config.contains(key)) out.token_ids[key] = kept_config[key];
  const std::string kept = kept_tokenizer(checkpoint);
  if (!kept.empty() && !out.files.contains(kTokenizerConfigFile)) {
    const std::string place = checkpoint.info().path + "/" + kept;
    const SpecialTokens tokens = find_special_tokens(*tokenizer_from_text(out.files[kept], place));
    describe_tokenizer(tokens, out);
    if (kept_config.empty()) out.token_ids = tokens.ids;
  }
  if (!out.files.contains("generation_config.json")) {
    Json generation = {{"_from_model_config", true}};
    generation.update(out.token_ids);
    out.files["generation_config.json"] = pretty(generation);
  }
  return out;
}

}  // namespace tycho
