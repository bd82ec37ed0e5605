// Writes tokenizers like MistralConverter of transformers 4.57: a token of a higher rank is merged from each
// two tokens that it consists of.
#include "trainer/data/tokenizer/tekken.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/base/text/base64.h"
#include "trainer/data/tokenizer/byte_level.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/data/tokenizer/tokenizer_reader.h"

namespace tycho {
namespace {

using Reader = TokenizerReader;

constexpr const char* kTextBegin = "<s>";
constexpr size_t kNumBytes = 256;
constexpr std::array kVersions = {"v1", "v2", "v3", "v7", "v11", "v13", "v15"};
constexpr size_t kNumOldVersions = 4;  // their files need not list the special tokens, which are these
constexpr std::array kOldSpecialTokens = {"<unk>",
                                          "<s>",
                                          "</s>",
                                          "[INST]",
                                          "[/INST]",
                                          "[AVAILABLE_TOOLS]",
                                          "[/AVAILABLE_TOOLS]",
                                          "[TOOL_RESULTS]",
                                          "[/TOOL_RESULTS]",
                                          "[TOOL_CALLS]",
                                          "[IMG]",
                                          "<pad>",
                                          "[IMG_BREAK]",
                                          "[IMG_END]",
                                          "[PREFIX]",
                                          "[MIDDLE]",
                                          "[SUFFIX]",
                                          "[SYSTEM_PROMPT]",
                                          "[/SYSTEM_PROMPT]",
                                          "[TOOL_CONTENT]"};

const Json& tekken_member(const Reader& reader, const Json& object, const char* key, const char* where) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end()) reader.malformed("{} has no \"{}\"", where, key);
  return *found;
}

std::string tekken_text(const Reader& reader, const Json& object, const char* key, const char* where) {
  const Json& value = tekken_member(reader, object, key, where);
  if (!value.is_string()) reader.malformed("\"{}\" of {} must be a string", key, where);
  return value.get<std::string>();
}

size_t tekken_count(const Reader& reader, const Json& object, const char* key, const char* where) {
  const Json& value = tekken_member(reader, object, key, where);
  if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(kMaxTokenId))
    reader.malformed("\"{}\" of {} must be a whole number from 0 to {}", key, where, kMaxTokenId);
  return value.get<size_t>();
}

void check_rank(const Reader& reader, const Json& entry, size_t wanted, const char* where) {
  if (const size_t rank = tekken_count(reader, entry, "rank", where); rank != wanted)
    reader.malformed("expected {} with rank {}, got rank {}: ranks are in order and without gaps", where,
                     wanted, rank);
}

/// Returns the special tokens by id, of which those that the file does not name are <SPECIAL_20>, ...
std::vector<std::string> read_special_tokens(const Reader& reader, const Json& root, const Json& config) {
  const std::string version = tekken_text(reader, config, "version", "config");
  const auto known = std::find(kVersions.begin(), kVersions.end(), version);
  if (known == kVersions.end())
    reader.malformed("expected a version of {}, got \"{}\": take a file of one of these",
                     fmt::join(kVersions, ", "), version);
  const auto list = root.find("special_tokens");
  const bool is_listed = list != root.end() && !list->is_null();
  if (!is_listed && std::cmp_greater_equal(known - kVersions.begin(), kNumOldVersions))
    reader.malformed("a file of version {} has no \"special_tokens\"", version);
  if (is_listed && !list->is_array()) reader.malformed("\"special_tokens\" must be a list");
  std::vector<std::string> tokens;
  if (is_listed) {
    for (const Json& entry : *list) {
      check_rank(reader, entry, tokens.size(), "a special token");
      tokens.push_back(tekken_text(reader, entry, "token_str", "a special token"));
    }
  } else {
    tokens.assign(kOldSpecialTokens.begin(), kOldSpecialTokens.end());
  }
  const size_t count = tekken_count(reader, config, "default_num_special_tokens", "config");
  if (tokens.size() > count)
    reader.malformed("expected at most {} special tokens (default_num_special_tokens), got {}", count,
                     tokens.size());
  while (tokens.size() < count) tokens.push_back(fmt::format("<SPECIAL_{}>", tokens.size()));
  return tokens;
}

/// Returns the bytes of the first `count` tokens that are not special, by rank.
std::vector<std::string> read_tokens(const Reader& reader, const Json& vocab, size_t count) {
  if (!vocab.is_array()) reader.malformed("\"vocab\" must be a list");
  if (vocab.size() < count || count < kNumBytes)
    reader.malformed("expected {} to {} tokens beside the special ones (default_vocab_size), got {}",
                     kNumBytes, vocab.size(), count);
  std::vector<std::string> tokens;
  for (const Json& entry : vocab) {
    if (tokens.size() == count) break;
    check_rank(reader, entry, tokens.size(), "a token");
    const std::optional<std::string> bytes =
        from_base64(tekken_text(reader, entry, "token_bytes", "a token"));
    if (!bytes || bytes->empty())
      reader.malformed("the token_bytes of rank {} are not base64", tokens.size());
    if (tokens.size() < kNumBytes && *bytes != std::string(1, static_cast<char>(tokens.size())))
      reader.malformed("expected the byte 0x{0:02x} as the token of rank {0}", tokens.size());
    tokens.push_back(*bytes);
  }
  return tokens;
}

/// Lists the merges: those to a token of a lower rank first, then those of parts with lower ranks.
Json merges_of(const Reader& reader, const std::vector<std::string>& tokens,
               const std::vector<std::string>& spellings) {
  std::unordered_map<std::string_view, size_t> ranks;
  for (size_t rank = 0; rank < tokens.size(); ++rank)
    if (!ranks.emplace(tokens[rank], rank).second)
      reader.malformed("the token of rank {} is that of rank {}, too", rank, ranks.at(tokens[rank]));
  Json merges = Json::array();
  for (const std::string_view token : tokens) {
    std::vector<std::pair<size_t, size_t>> parts;
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = ranks.find(token.substr(0, cut)), right = ranks.find(token.substr(cut));
      if (left != ranks.end() && right != ranks.end()) parts.emplace_back(left->second, right->second);
    }
    std::sort(parts.begin(), parts.end());
    for (const auto& [left, right] : parts) merges.push_back(spellings[left] + " " + spellings[right]);
  }
  return merges;
}

/// Returns the vocabulary as JSON text, since objects that keep order are slow.
std::string vocab_text(const Reader& reader, const std::vector<std::string>& special,
                       const std::vector<std::string>& spellings) {
  std::unordered_map<std::string_view, size_t> ids;
  std::string text;
  const auto add = [&](const std::string& token) {
    const size_t id = ids.size();
    if (token.empty()) reader.malformed("the special token {} is empty", id);
    if (const auto [known, is_new] = ids.emplace(token, id); !is_new)
      reader.malformed("the tokens {} and {} are both \"{}\"", known->second, id, token);
    text += fmt::format("{}{}:{}", id > 0 ? "," : "", Json(token).dump(), id);
  };
  for (const std::string& token : special) add(token);
  for (const std::string& token : spellings) add(token);
  return "{" + text + "}";
}

Json added_special_tokens(const std::vector<std::string>& special) {
  Json added = Json::array();
  for (const std::string& token : special)
    added.push_back({{"id", added.size()},
                     {"content", token},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  return added;
}

/// Returns the post-processor that puts <s> before a text, where there is such a token.
Json text_begin_of(const std::vector<std::string>& special) {
  const auto found = std::find(special.begin(), special.end(), kTextBegin);
  if (found == special.end()) return nullptr;
  const Json single = Json::array({{{"SpecialToken", {{"id", kTextBegin}, {"type_id", 0}}}},
                                   {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}});
  const Json token = {{"id", kTextBegin},
                      {"ids", Json::array({std::distance(special.begin(), found)})},
                      {"tokens", Json::array({kTextBegin})}};
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", single},
          {"special_tokens", {{kTextBegin, token}}}};
}

}  // namespace

bool is_tekken_file(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  return name.find("tekken") != std::string::npos && name.ends_with(".json");
}

std::string tokenizer_json_of_tekken(std::string_view text, const std::string& place) {
  const Reader reader(place);
  const Json root = parse_json(text, place);
  const Json& config = tekken_member(reader, root, "config", "the file");
  const std::vector<std::string> special = read_special_tokens(reader, root, config);
  const size_t size = tekken_count(reader, config, "default_vocab_size", "config");
  const std::vector<std::string> tokens = read_tokens(
      reader, tekken_member(reader, root, "vocab", "the file"), size - std::min(size, special.size()));
  std::vector<std::string> spellings;
  for (const std::string& token : tokens) spellings.push_back(to_byte_level(token));
  const auto byte_level = [](bool use_regex) {
    return Json{{"type", "ByteLevel"},
                {"add_prefix_space", use_regex},
                {"trim_offsets", true},
                {"use_regex", use_regex}};
  };
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", tekken_text(reader, config, "pattern", "config")}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  const Json head = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added_special_tokens(special)},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", Json::array({split, byte_level(false)})}}},
      {"post_processor", text_begin_of(special)},
      {"decoder", byte_level(true)}};
  const Json model = {{"type", "BPE"},
                      {"dropout", nullptr},
                      {"unk_token", nullptr},
                      {"continuing_subword_prefix", nullptr},
                      {"end_of_word_suffix", nullptr},
                      {"fuse_unk", false},
                      {"byte_fallback", false},
                      {"ignore_merges", true},
                      {"merges", merges_of(reader, tokens, spellings)}};
  std::string made = head.dump();
  made.pop_back();
  made += ",\"model\":" + model.dump();
  made.pop_back();
  return made + ",\"vocab\":" + vocab_text(reader, special, spellings) + "}}\n";
}

}  // namespace tycho
