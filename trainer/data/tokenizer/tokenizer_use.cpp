// Follows transformers 4.57 when it loads a folder with tokenizer.json;
// tests/golden/tokenizer_folders/make_tokenizer_folder_goldens.py compares the two, and says where
// transformers 5 differs.
#include "trainer/data/tokenizer/tokenizer_use.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "trainer/data/tokenizer/pre_tokenizer_json.h"
#include "trainer/data/tokenizer/tokenizer_reader.h"

namespace tycho {
namespace {

using Value = TokenizerReader::Value;
using Reader = TokenizerReader;

constexpr size_t kMaxFileBytes = 16u << 20;
constexpr size_t kMaxTokens = 100'000;
constexpr std::array kNames = {"bos_token", "eos_token", "unk_token", "sep_token",
                               "pad_token", "cls_token", "mask_token"};

/// A class of transformers that makes the post_processor itself, with its defaults.
struct OwnTemplate {
  const char* name;
  bool adds_bos;
  const char *bos, *eos;
};
constexpr std::array kOwnTemplates = {
    OwnTemplate{"LlamaTokenizer", true, "<s>", "</s>"},
    OwnTemplate{"CodeLlamaTokenizer", true, "<s>", "</s>"},
    OwnTemplate{"GemmaTokenizer", true, "<bos>", "<eos>"},
    OwnTemplate{"CohereTokenizer", true, "<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>"},
    OwnTemplate{"GPTNeoXTokenizer", false, "<|endoftext|>", "<|endoftext|>"}};

/// True for classes that transformers builds from a tokenizer.model again when add_prefix_space is named.
bool is_rebuilt_for_prefix(const std::string& name) {
  return name == "LlamaTokenizer" || name == "CodeLlamaTokenizer" || name == "GemmaTokenizer";
}

Value read_object(const TokenizerFilesBeside& beside, const char* name, const Reader& reader) {
  const auto found = beside.find(name);
  if (found == beside.end()) return Value::object();
  if (found->second.size() > kMaxFileBytes) reader.malformed("more than {} MiB", kMaxFileBytes >> 20);
  try {
    Value value = Value::parse(found->second);
    if (!value.is_object()) reader.malformed("not an object");
    return value;
  } catch (const Value::parse_error& error) {
    reader.malformed("not valid JSON at byte {} of {}", error.byte, found->second.size());
  }
}

/// Reads a special token: its text, or an object that has it as "content". `named`: its name makes it
/// special.
AddedToken read_token(const Reader& reader, const Value& value, const std::string& key, bool named) {
  AddedToken token;
  token.id = -1;
  token.special = named;
  if (value.is_string()) {
    token.content = value.get<std::string>();
    return token;
  }
  token.content = reader.text(value, "content", key.c_str());
  token.lstrip = reader.flag(value, "lstrip", false);
  token.rstrip = reader.flag(value, "rstrip", false);
  token.single_word = reader.flag(value, "single_word", false);
  token.special = named || reader.flag(value, "special", false);
  token.normalized = reader.flag(value, "normalized", !token.special);
  return token;
}

/// Special tokens of the files read so far. A later file replaces tokens of the same name.
class SpecialTokens {
 public:
  void read(const Reader& reader, const Value& file) {
    for (const char* key : kNames)
      if (const auto it = file.find(key); it != file.end())
        it->is_null() ? void(named_.erase(key))
                      : void(named_[key] = read_token(reader, *it, key, /*named=*/true));
    for (const char* key : {"additional_special_tokens", "extra_special_tokens"})
      if (const auto it = file.find(key); it != file.end()) read_more(reader, *it, key);
  }

  const std::map<std::string, AddedToken>& named() const { return named_; }
  std::vector<AddedToken> all() const {
    std::vector<AddedToken> tokens;
    for (const char* key : kNames)
      if (const auto it = named_.find(key); it != named_.end()) tokens.push_back(it->second);
    tokens.insert(tokens.end(), more_.begin(), more_.end());
    return tokens;
  }

 private:
  void read_more(const Reader& reader, const Value& list, const std::string& key) {
    if (list.is_null()) return;
    if (!list.is_array() && !list.is_object()) reader.malformed("\"{}\" must be a list of tokens", key);
    if (list.size() > kMaxTokens) reader.malformed("\"{}\" has more than {} tokens", key, kMaxTokens);
    for (const Value& value : list) {
      AddedToken token = read_token(reader, value, key, /*named=*/true);
      if (contents_.insert(token.content).second) more_.push_back(std::move(token));
    }
  }

  std::map<std::string, AddedToken> named_;
  std::vector<AddedToken> more_;
  std::set<std::string> contents_;
};

int32_t read_id(const Reader& reader, const std::string& text, const std::string& where) {
  const bool digits = !text.empty() && text.size() < 9 && text.find_first_not_of("0123456789") == text.npos;
  if (!digits || std::stol(text) > kMaxTokenId)
    reader.malformed("\"{}\" must be an id from 0 to {}", where, kMaxTokenId);
  return static_cast<int32_t>(std::stol(text));
}

/// Reads added_tokens_decoder of a tokenizer_config.json, which maps ids to tokens.
void read_added_decoder(const Reader& reader, const Value& list, TokenizerUse& use) {
  if (!list.is_object()) reader.malformed("\"added_tokens_decoder\" must be an object of ids and tokens");
  if (list.size() > kMaxTokens) reader.malformed("more than {} added tokens", kMaxTokens);
  for (const auto& [id, value] : list.items()) {
    if (!value.is_object()) reader.malformed("token {} of \"added_tokens_decoder\" must be an object", id);
    AddedToken token = read_token(reader, value, "added_tokens_decoder", /*named=*/false);
    token.id = read_id(reader, id, id);
    use.added[token.id] = std::move(token);
  }
}

/// Reads added_tokens.json, which maps tokens to ids.
void read_added_tokens(const Reader& reader, const Value& list, const std::vector<AddedToken>& special,
                       TokenizerUse& use) {
  if (list.size() > kMaxTokens) reader.malformed("more than {} added tokens", kMaxTokens);
  std::set<std::string> contents;
  for (const AddedToken& token : special) contents.insert(token.content);
  for (const auto& [content, value] : list.items()) {
    AddedToken token;
    token.content = content;
    token.id = reader.id(value, content);
    token.special = contents.contains(content);
    token.normalized = !token.special;
    use.added[token.id] = std::move(token);
  }
}

std::string name_of_class(const Reader& reader, const Value& config) {
  const auto it = config.find("tokenizer_class");
  if (it == config.end() || it->is_null()) return "";
  std::string name = reader.text(config, "tokenizer_class", "the file");
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  return name;
}

/// Adds a token, or changes the one with the same text. Returns its id.
int32_t add_token(AddedToken token, int32_t& next_id, std::map<std::string, size_t>& places,
                  TokenizerParts& parts) {
  const auto known = parts.ids.find(token.content);
  if (known == parts.ids.end()) parts.info.added_beside.push_back(token.content);
  token.id = known != parts.ids.end() ? known->second : next_id++;
  parts.ids.emplace(token.content, token.id);
  const auto [place, is_new] = places.emplace(token.content, parts.added.size());
  if (is_new) {
    parts.added.push_back(token);
  } else {
    // A special token stays special.
    token.special = token.special || parts.added[place->second].special;
    parts.added[place->second] = token;
  }
  return token.id;
}

bool puts_space_first(const TokenizerParts& parts) {
  using Kind = PreTokenizerStep::Kind;
  const bool in_pieces =
      std::any_of(parts.pre_tokenizers.begin(), parts.pre_tokenizers.end(), [](const PreTokenizerStep& step) {
        return step.kind == Kind::kPrefixSpace ||
               (step.kind == Kind::kMetaspace && step.prepend != PreTokenizerStep::Prepend::kNever);
      });
  return in_pieces || std::any_of(parts.normalizers.begin(), parts.normalizers.end(), [](const auto& step) {
           return step.kind == NormalizerStep::Kind::kPrepend;
         });
}

}  // namespace

TokenizerUse read_tokenizer_use(const TokenizerFilesBeside& beside, const std::string& place) {
  const auto named = [&](const char* name) {
    return std::filesystem::path(place).replace_filename(name).string();
  };
  TokenizerUse use;
  use.place = named(kTokenizerConfigFile);
  const Reader reader(use.place);
  const Value config = read_object(beside, kTokenizerConfigFile, reader);
  use.tokenizer_class = name_of_class(reader, config);
  SpecialTokens special;
  special.read(reader, config);
  const auto decoder = config.find("added_tokens_decoder");
  if (decoder != config.end()) {
    read_added_decoder(reader, *decoder, use);
  } else {
    const Reader map_reader(named(kSpecialTokensMapFile)), added_reader(named(kAddedTokensFile));
    special.read(map_reader, read_object(beside, kSpecialTokensMapFile, map_reader));
    read_added_tokens(added_reader, read_object(beside, kAddedTokensFile, added_reader), special.all(), use);
  }
  use.special = special.all();
  for (const auto& [key, token] : special.named()) use.named[key] = token.content;
  const auto optional_flag = [&](const char* key) -> std::optional<bool> {
    const auto it = config.find(key);
    return it == config.end() || it->is_null() ? std::nullopt
                                               : std::optional(reader.flag(config, key, false));
  };
  use.add_prefix_space = optional_flag("add_prefix_space");
  use.prefix_space_is_named = use.add_prefix_space.has_value();
  if (beside.contains(kTokenizerConfigFile)) use.add_prefix_space = use.add_prefix_space.value_or(false);
  use.split_special_tokens = reader.flag(config, "split_special_tokens", false);
  use.adds_bos = optional_flag("add_bos_token");
  use.adds_eos = optional_flag("add_eos_token");
  return use;
}

void add_tokens_of_use(const TokenizerUse& use, size_t vocab_size, TokenizerParts& parts) {
  const Reader reader(use.place);
  auto next_id = static_cast<int32_t>(vocab_size);
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < parts.added.size(); ++i) {
    next_id = std::max(next_id, parts.added[i].id + 1);
    places[parts.added[i].content] = i;
  }
  std::set<std::string> special, listed;
  for (const AddedToken& token : use.special) special.insert(token.content);
  for (auto [id, token] : use.added) {
    if (token.content.empty()) continue;
    token.special = token.special || special.contains(token.content);
    listed.insert(token.content);
    if (const int32_t given = add_token(token, next_id, places, parts); given != id)
      reader.malformed(
          "the files beside the tokenizer expect token \"{}\" at id {}, got {} from the tokenizer.json, "
          "which counts: save the tokenizer again with transformers' save_pretrained, or correct the id",
          token.content, id, given);
  }
  for (const AddedToken& token : use.special) {
    if (token.content.empty() || listed.contains(token.content)) continue;
    const auto place = places.find(token.content);
    if (place == places.end()) {
      add_token(token, next_id, places, parts);
    } else {
      parts.added[place->second].special = true;
    }
  }
  for (AddedToken& token : parts.added) token.stays_text = use.split_special_tokens && token.special;
}

void check_tokens_of_use(const TokenizerUse& use, const TokenizerParts& parts) {
  const Reader reader(use.place);
  const auto check = [&](const AddedToken& token) {
    if (const auto found = parts.ids.find(token.content);
        !token.content.empty() && (found == parts.ids.end() || (token.id >= 0 && found->second != token.id)))
      reader.malformed(
          "expected only tokens that the tokenizer.model has, got \"{}\"{}, which transformers adds to it: "
          "name the tokenizer.json of the folder, or write one with transformers' save_pretrained",
          token.content, found == parts.ids.end() ? "" : fmt::format(" with the id {}", token.id));
  };
  for (const auto& [id, token] : use.added) check(token);
  for (const AddedToken& token : use.special) check(token);
}

void apply_prefix_space(const TokenizerUse& use, TokenizerParts& parts) {
  if (!use.add_prefix_space) return;
  if (is_rebuilt_for_prefix(use.tokenizer_class)) {
    if (use.prefix_space_is_named && *use.add_prefix_space != puts_space_first(parts))
      Reader(use.place).malformed(
          "expected add_prefix_space as the tokenizer has it, {}, got {}: transformers builds another "
          "tokenizer for this; leave add_prefix_space out, or write a tokenizer.json that has it with "
          "save_pretrained",
          !*use.add_prefix_space, *use.add_prefix_space);
    return;
  }
  using Kind = PreTokenizerStep::Kind;
  auto& steps = parts.pre_tokenizers;
  if (!parts.only_byte_level) return;  // transformers changes no other pre_tokenizer
  std::erase_if(steps, [](const PreTokenizerStep& step) { return step.kind == Kind::kPrefixSpace; });
  if (*use.add_prefix_space) {
    PreTokenizerStep space;
    space.kind = Kind::kPrefixSpace;
    steps.insert(steps.begin(), space);
  }
  parts.info.pre_tokenizers = pre_tokenizer_names(steps);
}

void apply_names(const TokenizerUse& use, TokenizerParts& parts) {
  const Reader reader(use.place);
  const auto text_of = [&](const char* key, const char* otherwise) {
    const auto it = use.named.find(key);
    return it == use.named.end() ? std::string(otherwise) : it->second;
  };
  for (const auto& [key, text] : {std::pair("bos_token", &parts.info.bos),
                                  {"eos_token", &parts.info.eos},
                                  {"pad_token", &parts.info.pad}})
    if (const std::string token = text_of(key, ""); parts.ids.contains(token)) *text = token;
  for (const OwnTemplate& own : kOwnTemplates) {
    if (use.tokenizer_class != own.name) continue;
    const auto id_of = [&](const char* key, const char* otherwise, const char* flag) {
      const std::string token = text_of(key, otherwise);
      const auto found = parts.ids.find(token);
      if (found == parts.ids.end()) reader.malformed("{} adds \"{}\", which is not a token", flag, token);
      return found->second;
    };
    parts.text_begin.clear();
    parts.text_end.clear();
    if (use.adds_bos.value_or(own.adds_bos))
      parts.text_begin = {id_of("bos_token", own.bos, "add_bos_token")};
    if (use.adds_eos.value_or(false)) parts.text_end = {id_of("eos_token", own.eos, "add_eos_token")};
  }
}

}  // namespace tycho
